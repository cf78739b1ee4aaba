/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Bytes that are made to be shown to everybody: certificates and public keys. They are known
 * by their own structure, not by the line above them; what only begins like one is none.
 */
#ifndef LYCH_VESSEL_GATE_DECODE_PUBLIC_H
#define LYCH_VESSEL_GATE_DECODE_PUBLIC_H

#include "vessel/gate/decode/decode.h"
#include <stdbool.h>
#include <stddef.h>

/* A certificate of X.509; a key of X.509, PKCS #1 or SSH, or the packets of one of OpenPGP. The
 * end may miss, of a certificate what follows its dates; nothing may follow any of them. */
bool gate_is_public(const char *s, size_t len);
/*
 * Where such things stand in a text: between the lines of PEM and PGP, which are read as they
 * are, indented, quoted or with "\n" for their ends; keys of SSH; and those of minisign and
 * signify, whose form says nothing of itself, below a comment that says it. The caller frees
 * the list.
 */
struct gate_stretches gate_find_public(const char *s, size_t len);

#endif
