/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Compiler attributes used across the tree.
 */
#ifndef LYCH_COMMON_ATTR_H
#define LYCH_COMMON_ATTR_H

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_FMT(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN __attribute__((noreturn))
/* Its frame is not part of its caller's, which would be a page of stack more in each start. */
#define OWN_FRAME __attribute__((noinline))
#define UNUSED __attribute__((unused))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Built with the address sanitizer, whose leak check ptraces at exit. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_LSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_LSAN 1
#endif
#endif

#endif
