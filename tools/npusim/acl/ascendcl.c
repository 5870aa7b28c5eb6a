/* SPDX-License-Identifier: BSD-2-Clause */
/* libascendcl since 8.5: an empty shell whose only purpose is its DT_NEEDED on libacl_rt. */
__attribute__((visibility("default"))) extern const char ascendcl_compatibility_shell[];
const char ascendcl_compatibility_shell[] = "libascendcl";
