/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A body as its reader sees it, where it is written with escapes for the ends of its lines: strings of JSON, of lines of
 * JSON, of programs. What lies in lines within such a string (base64 with something around each piece) is no text of
 * lines before that.
 */
#ifndef LYCH_VESSEL_BROKER_DISPATCH_UNESCAPED_H
#define LYCH_VESSEL_BROKER_DISPATCH_UNESCAPED_H

#include "common/buf.h"

#include <stdbool.h>

/* The text with \n, \r, \t, \", \', \/ and \\ undone, once; out is empty before and has room for len bytes. False: it has
 * no end of a line written so, and out stays empty. Escapes of characters (\u0041) stay: the gate undoes them. */
bool unescaped(const char *text, size_t len, struct buf *out);

#endif
