/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The two tables of routes: the owner's socket and the tombs'.
 */
#ifndef LYCH_VESSEL_API_ROUTES_H
#define LYCH_VESSEL_API_ROUTES_H

#include "common/net/httpd.h"

extern const struct httpd_route routes_api[];
extern const size_t routes_api_n;
extern const struct httpd_route routes_work[];
extern const size_t routes_work_n;

#endif
