// roles_json.h - roles for programs, as all verbs write them.
#ifndef TARN_TOOL_ROLES_JSON_H_
#define TARN_TOOL_ROLES_JSON_H_

#include "kit/json.h"
#include "roles.h"

// The keys "roles": [{"role", "bytes", "rule", "blocks"}], where "rule" has all
// rules that found blocks of the role, and "phase" of |at|: null if unknown.
void roles_json_put(json *out, const roles *r, const role_sums *sums,
                    moment at);

#endif  // TARN_TOOL_ROLES_JSON_H_
