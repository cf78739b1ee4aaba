/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The three steps of an upload, the same for the owner and, once its lease is checked, a
 * tomb.
 */
#ifndef LYCH_VESSEL_API_UPLOADS_H
#define LYCH_VESSEL_API_UPLOADS_H

#include "common/net/httpd.h"
#include "vessel/api/vessel.h"

void uploads_begin(struct vessel *v, struct httpd_req *req, const char *owner);
void uploads_part(struct vessel *v, struct httpd_req *req, const char *owner);
void uploads_commit(struct vessel *v, struct httpd_req *req, const char *owner);

#endif
