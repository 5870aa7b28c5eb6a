/* SPDX-License-Identifier: BSD-2-Clause */
/* libacl_rt: every function is a jump to its *Impl in libruntime. */
#include "../abi/acl.h"

#pragma GCC visibility push(default)

#define WRAPPER(type, name, params, args)                                                                    \
	ACL_IMPL_PROTOTYPE(type, name, params, args)                                                         \
	type name params                                                                                     \
	{                                                                                                    \
		return name##Impl args;                                                                      \
	}

ACL_API(WRAPPER)
