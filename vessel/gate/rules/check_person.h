/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Checks of what says who somebody is, or where: as gate_check() has them, one by one.
 */
#ifndef LYCH_VESSEL_GATE_RULES_CHECK_PERSON_H
#define LYCH_VESSEL_GATE_RULES_CHECK_PERSON_H

#include "vessel/gate/rules/check.h"

bool gate_check_email(struct gate_match *m);
bool gate_check_phone(struct gate_match *m);
/* A 0 before the area, and groups as they are written somewhere. */
bool gate_check_phone_national(struct gate_match *m);
/* A word before it says what it is. */
bool gate_check_phone_said(struct gate_match *m);
bool gate_check_street(struct gate_match *m);
bool gate_check_iban(struct gate_match *m);
bool gate_check_ipv4(struct gate_match *m);
bool gate_check_ipv6(struct gate_match *m);
bool gate_check_mac(struct gate_match *m);
bool gate_check_gps(struct gate_match *m);
bool gate_check_name(struct gate_match *m);
bool gate_check_card(struct gate_match *m);
bool gate_check_ssn(struct gate_match *m);
bool gate_check_nhs(struct gate_match *m);
/* A number of some office: letters too, but digits enough. */
bool gate_check_digits(struct gate_match *m);

#endif
