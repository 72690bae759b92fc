// What a call spends and tells. Heights and bounds of single instances reach
// the caller only where they are true of the whole.
#include "plan/call.h"

#include "plan/overlap.h"

typedef struct telling {
  tarn__plan_call *call;
  const tarn__plan_try *share;
  uint64_t unit;
} telling;

void tarn__plan_call_begin(tarn__plan_call *call,
                           const tarn_plan_options *options) {
  *call = (tarn__plan_call){.options = *options,
                            .began_ns = tarn__os_now_ns(),
                            .deadline_ns = UINT64_MAX,
                            .height = UINT64_MAX,
                            .told_height = UINT64_MAX};
  call->told_ns = call->began_ns;
  double ns = options->time_limit_s * 1e9;
  if (ns < 9e18) call->deadline_ns = call->began_ns + (uint64_t)ns;
}

double tarn__plan_call_seconds(const tarn__plan_call *call) {
  return (double)(tarn__os_now_ns() - call->began_ns) * 1e-9;
}

bool tarn__plan_call_late(tarn__plan_call *call) {
  return atomic_load_explicit(&call->asked, memory_order_relaxed) ||
         tarn__os_now_ns() >= call->deadline_ns;
}

bool tarn__plan_call_over(tarn__plan_call *call) {
  uint64_t limit = call->options.node_limit;
  return (limit != 0 && call->nodes >= limit) || tarn__plan_call_late(call);
}

// Whether the caller hears of it: a better plan at once, all else only so
// often, however many instances there are.
static bool is_due(tarn__plan_call *call) {
  uint64_t now = tarn__os_now_ns();
  bool better = call->height < call->told_height;
  if (!better && now - call->told_ns < TARN__PLAN_WATCH_EACH_NS) return false;
  call->told_height = call->height;
  call->told_ns = now;
  return true;
}

static void ask_caller(tarn__plan_call *call, uint64_t nodes) {
  tarn_plan_progress progress = {
      .struct_size = sizeof progress,
      .height = call->height == UINT64_MAX ? 0 : call->height,
      .lower_bound = call->bound,
      .nodes = call->nodes + nodes,
      .seconds = tarn__plan_call_seconds(call)};
  call->cancelled = !call->options.progress(&progress, call->options.user);
}

static bool tell(void *user, uint64_t height, uint64_t bound, uint64_t nodes) {
  const telling *t = user;
  tarn__plan_call *call = t->call;
  if (t->share->is_plan && height != UINT64_MAX &&
      height * t->unit < call->height) {
    call->height = height * t->unit;
  }
  if (t->share->is_bound && bound * t->unit > call->bound) {
    call->bound = bound * t->unit;
  }
  if (!call->cancelled && is_due(call)) ask_caller(call, nodes);
  return !call->cancelled;
}

// A limit of 0 is none, so that what is spent leaves 1.
static uint64_t nodes_left(const tarn__plan_call *call, uint64_t share) {
  uint64_t limit = call->options.node_limit;
  if (limit == 0) return share;
  uint64_t left = call->nodes < limit ? limit - call->nodes : 1;
  return share == 0 || left < share ? left : share;
}

tarn_status tarn__plan_call_solve(tarn__plan_call *call,
                                  const tarn__plan_instance *instance,
                                  const tarn__plan_try *share,
                                  uint64_t *offsets, tarn__plan_found *found) {
  telling t = {.call = call, .share = share, .unit = instance->unit};
  tarn__plan_watcher watcher = {.tell = tell, .user = &t};
  tarn__plan_aim aim = {
      .capacity = share->capacity,
      .minimise = share->minimise,
      .node_limit = nodes_left(call, share->node_limit),
      .threads = call->options.threads,
      .deadline_ns = call->deadline_ns,
      .asked = &call->asked,
      .watcher = call->options.progress != NULL ? &watcher : NULL};
  bool collide = false;
  tarn_status status = tarn__plan_fixed_collide(instance, &collide);
  if (status != TARN_OK) return status;
  if (collide) {
    *found = (tarn__plan_found){.answer = TARN_PLAN_INFEASIBLE,
                                .height = UINT64_MAX,
                                .bound = instance->bound};
    return TARN_OK;
  }
  status = tarn__plan_solve(instance, &aim, offsets, found);
  call->nodes += found->nodes;
  return status;
}
