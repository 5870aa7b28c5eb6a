/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of a C++ function's parameters, from its symbol. */
#ifndef NPS_MANGLED_TYPES_H
#define NPS_MANGLED_TYPES_H

#define NPS_MANGLED_TYPE_MAX 160 /* bytes of a type with its NUL */

/* One parameter: "at::Tensor const&", "std::optional<c10::ArrayRef<long>>". Not 0: stop, and return that. */
typedef int (*nps_mangled_type_fn)(const char *type, void *arg);

/*
 * Calls EACH for the parameters of SYMBOL in their order, which is the mangled name (_ZN...) of a function in
 * a namespace or class. 0, or what EACH returned; -EINVAL: it has another form, or types that are not known
 * here, after EACH was called for those before.
 */
int nps_mangled_types__each(const char *symbol, nps_mangled_type_fn each, void *arg);

#endif
