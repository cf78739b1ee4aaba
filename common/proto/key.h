/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the egress worker.
 * What a key that a provider or host has issued may be: the egress worker takes it out of replies in
 * all its spellings, so none of its characters may begin an escape there; lych takes no other.
 */
#ifndef LYCH_COMMON_PROTO_KEY_H
#define LYCH_COMMON_PROTO_KEY_H

#define KEY_SIGNS_REFUSED "%\"\\"
/* A shorter one, which only a server on this machine may want, is no secret and not looked for. */
#define KEY_LOOKED_FOR_MIN_BYTES 8

#endif
