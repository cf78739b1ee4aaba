/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Arithmetic by which numbers and keys prove themselves: pure, on the bytes alone.
 */
#ifndef LYCH_VESSEL_GATE_VALID_VALID_H
#define LYCH_VESSEL_GATE_VALID_VALID_H

#include <stdbool.h>
#include <stddef.h>

/* Everything but the digits (letters, digits for IBAN) is passed over. */
/* Luhn, a length and first digits that some network issues (ISO/IEC 7812). *ret_is_wide: so many
 * other numbers begin so, too, that this says little. */
bool valid_card(const char *s, size_t len, bool *ret_is_wide);
/* Groups of digits as a national number of telephone has them: see phone.c. */
bool valid_phone_groups(const char *s, size_t len);
/* Each digit follows on the one before: "0123456789". */
bool valid_rising(const char *s, size_t len);
/* ISO 13616: the letters and digits of an IBAN of that country; 0: it has none. */
size_t valid_iban_length(const char *s, size_t len);
/* The country's length, mod 97. */
bool valid_iban(const char *s, size_t len);
/* Ranges that the US administration gives out. */
bool valid_ssn(const char *s, size_t len);
/* Ten digits, the last by mod 11. */
bool valid_nhs(const char *s, size_t len);
/* Base58 whose last four bytes are the double SHA-256 of the others. */
bool valid_base58check(const char *s, size_t len);
/* BIP 173 and BIP 350. One case only. */
bool valid_bech32(const char *s, size_t len);
/* `prefix_len` bytes, a body, and the CRC-32 of the body as six digits of base 62: the
 * tokens of GitHub and npm. */
bool valid_crc62(const char *s, size_t len, size_t prefix_len);
/* The account number inside an AWS key id, of which the first 14 letters have it, is a number of
 * twelve digits. */
bool valid_aws_key(const char *s, size_t len);

/* Bits per byte of s, by Shannon. */
double entropy_of(const char *s, size_t len);
size_t distinct_bytes(const char *s, size_t len);

/* How many bytes there are of each kind; other: all but ASCII's letters and digits. */
struct gate_classes {
	size_t lower, upper, digit, other;
};
struct gate_classes gate_classes_of(const char *s, size_t len);

#endif
