// Roles as JSON.
#include "roles_json.h"

#include "kit/tool.h"

static void put_rules(json *out, const role_sum *row) {
  char text[1024] = "";
  for (size_t i = 0; i < row->rule_count; i++)
    tool_append(text, sizeof text, "; ", row->rules[i]);
  json_key_text(out, "rule", text);
}

void roles_json_put(json *out, const roles *r, const role_sums *sums,
                    moment at) {
  json_key_array(out, "roles");
  for (size_t i = 0; i < sums->count; i++) {
    const role_sum *row = &sums->items[i];
    json_begin_object(out);
    json_key_text(out, "role", role_name(row->what));
    json_key_uint(out, "bytes", row->bytes);
    put_rules(out, row);
    json_key_uint(out, "blocks", row->blocks);
    json_end_object(out);
  }
  json_end_array(out);
  json_key_text(out, "phase", phase_name(phases_at(&r->phases, at)));
}
