/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Checks of what says who somebody is, or where: as gate_check() has them, one by one.
 */
#ifndef LYCH_VESSEL_GATE_CHECK_PERSON_H
#define LYCH_VESSEL_GATE_CHECK_PERSON_H

#include "vessel/gate/check.h"

bool gate_check_email(struct gate_match *m);
bool gate_check_phone(struct gate_match *m);
bool gate_check_iban(struct gate_match *m);
bool gate_check_ipv4(struct gate_match *m);
bool gate_check_ipv6(const struct gate_match *m);
bool gate_check_mac(const struct gate_match *m);
bool gate_check_gps(const struct gate_match *m);
bool gate_check_name(const struct gate_match *m);
bool gate_check_card(const struct gate_match *m);
bool gate_check_ssn(const struct gate_match *m);
bool gate_check_nhs(const struct gate_match *m);
/* A number of some office: letters too, but digits enough. */
bool gate_check_digits(const struct gate_match *m);

#endif
