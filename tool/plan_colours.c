// Colours by role, or by the holders of most.
#include "plan_colours.h"

#include <stdlib.h>

#include "frame_names.h"
#include "kit/tool.h"
#include "view_holders.h"

enum { BASELINE = PLAN_COLOURS - 2, OTHERS = PLAN_COLOURS - 1 };

static bool any_role(const tarn_trace *trace, const roles *r) {
  for (size_t i = 0; i < trace->block_count; i++) {
    if (roles_of(r, (uint32_t)i) != ROLE_UNKNOWN) return true;
  }
  return false;
}

static void colour_by_role(plan_colours *c, const tarn_trace *trace,
                           const roles *r) {
  for (size_t i = 0; i < trace->block_count; i++) {
    role what = roles_of(r, (uint32_t)i);
    c->of_block[i] = (uint8_t)what;
    if (c->names[what] == NULL) c->names[what] = tool_text(role_plural(what));
  }
}

// Bytes of each holder at the peak, and a little for those elsewhere.
static double *weigh(const tarn_trace *trace, const view_holders *h) {
  double *weights = tool_array(h->count, sizeof *weights);
  block_set live = moment_live(trace, trace->live_peak_event);
  for (size_t i = 0; i < trace->block_count; i++)
    weights[h->of_block[i]] += (double)trace->blocks[i].size * 1e-9;
  for (size_t i = 0; i < live.count; i++)
    weights[h->of_block[live.items[i]]] +=
        (double)trace->blocks[live.items[i]].size;
  block_set_deinit(&live);
  return weights;
}

static char *name_of(const tarn_trace *trace, int64_t name) {
  holder row = {.kind = HOLDER_NO_STACK};
  if (name >= 0)
    row = (holder){.kind = HOLDER_OWN, .frame = (uint32_t)name};
  else if (name < -1)
    row = (holder){.kind = HOLDER_TAG, .tag = (uint32_t)(-1 - name)};
  return frame_names_short(trace, &row, "");
}

// The holder of most that has no colour yet; the count of holders: none has.
static size_t heaviest(const view_holders *h, const double *weights,
                       const uint8_t *colours) {
  size_t best = h->count;
  for (size_t i = VIEW_HOLDER_NO_STACK; i < h->count; i++) {
    if (colours[i] != OTHERS || weights[i] <= 0) continue;
    if (best == h->count || weights[i] > weights[best]) best = i;
  }
  return best;
}

static void colour_by_holder(plan_colours *c, const tarn_trace *trace) {
  view_holders h = view_holders_make(trace, &(options_list){0});
  double *weights = weigh(trace, &h);
  uint8_t *colours = tool_array(h.count, sizeof *colours);
  for (size_t i = 0; i < h.count; i++)
    colours[i] = i == VIEW_HOLDER_BASELINE ? BASELINE : OTHERS;
  for (int i = 0; i < BASELINE; i++) {
    size_t best = heaviest(&h, weights, colours);
    if (best == h.count) break;
    colours[best] = (uint8_t)i;
    c->names[i] = name_of(trace, best < VIEW_HOLDERS ? -1 : h.names[best]);
  }
  for (size_t i = 0; i < trace->block_count; i++) {
    uint8_t colour = c->of_block[i] = colours[h.of_block[i]];
    if (c->names[colour] == NULL)
      c->names[colour] = tool_text(colour == BASELINE ? "baseline" : "others");
  }
  free(colours);
  free(weights);
  view_holders_deinit(&h);
}

plan_colours plan_colours_make(const tarn_trace *trace, const roles *r) {
  plan_colours c = {.of_block = tool_array(trace->block_count + 1, 1),
                    .by_role = any_role(trace, r)};
  if (c.by_role)
    colour_by_role(&c, trace, r);
  else
    colour_by_holder(&c, trace);
  return c;
}

void plan_colours_deinit(plan_colours *c) {
  for (size_t i = 0; i < PLAN_COLOURS; i++)
    free(c->names[i]);
  free(c->of_block);
  *c = (plan_colours){0};
}
