#include "support/strike.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"

enum { MOST = 3, LIMIT_S = 60 };

// What a rank says when something in it is not as it must be: no rank has a
// part in Check.
#define MUST(condition)                                                    \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "%s:%d: rank %zu: not %s: %s\n", __FILE__, __LINE__, \
              my_rank, #condition, tarn_last_error());                     \
      _exit(1);                                                            \
    }                                                                      \
  } while (0)

static size_t my_rank;

// --- what is left ----------------------------------------------------------

typedef struct belongings {
  size_t descriptors;
  size_t mappings;  // of files in memory
} belongings;

static size_t count_mappings(void) {
  char line[512];
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  require(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "/memfd:") != NULL) count++;
  fclose(maps);
  return count;
}

static belongings look_around(void) {
  return (belongings){ranks_descriptors(), count_mappings()};
}

// --- a rank ----------------------------------------------------------------

static bool is_victim(const strike *plan) {
  return my_rank == plan->victim;
}

static void join(const strike *plan, tarn_rendezvous *meeting,
                 scene_part *part) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = plan->timeout_ms};
  (void)SCENE_OK(part, tarn_comm_join(meeting, my_rank, &options, &part->comm));
  tarn_rendezvous_destroy(meeting);
}

// What is broken stays broken, and says so in the same words.
static void see_it_broken(const scene_part *part) {
  tarn_status status = part->word->status;
  if (status == TARN_OK || part->elsewhere) return;
  MUST(tarn_comm_barrier(part->comm) != TARN_OK);
  MUST(strcmp(tarn_last_error(), part->word->text) == 0);
}

static void play(const strike *plan, tarn_rendezvous *meeting,
                 scene_part *part) {
  const scene *it = plan->scene;
  part->place = scene_open(it, my_rank);
  if (it->joins && is_victim(plan)) tracer_offer();
  join(plan, meeting, part);
  if (part->comm != NULL && !it->joins) {
    (void)SCENE_OK(part, tarn_comm_barrier(part->comm));
    if (is_victim(plan)) tracer_offer();
  }
  if (part->word->status == TARN_OK) it->play(it, part);
  if (part->comm != NULL && !is_victim(plan)) see_it_broken(part);
  MUST(tarn_comm_destroy(part->comm) == TARN_OK);
}

static _Noreturn void be_rank(const strike *plan, tarn_rendezvous *meeting,
                              scene_word *word, belongings before) {
  scene_part part = {.word = word};
  signal(SIGALRM, SIG_DFL);  // Check's would end the test
  alarm(LIMIT_S);
  play(plan, meeting, &part);
  // Steps behind its last are not worth a strike.
  if (is_victim(plan) && !plan->stops) _exit(0);
  scene_close(part.place);
  belongings after = look_around();
  MUST(after.descriptors == before.descriptors);
  MUST(after.mappings == before.mappings);
  _exit(0);
}

// --- all of them -----------------------------------------------------------

typedef struct cast {
  const strike *plan;
  pid_t children[MOST];
  scene_word *words;
  double struck;  // when; 0: not
} cast;

static void complain(const cast *all, size_t rank, const char *what) {
  const strike *plan = all->plan;
  ck_abort_msg(
      "'%s' of %zu ranks, rank %zu %s at step %zu: rank %zu %s; it was told "
      "%s '%s'",
      plan->scene->name, plan->ranks, plan->victim,
      plan->stops ? "stopped" : "killed", plan->step, rank, what,
      tarn_status_name(all->words[rank].status), all->words[rank].text);
}

static void start(cast *all) {
  tarn_rendezvous *meeting = NULL;
  belongings before = look_around();
  memset(all->words, 0, MOST * sizeof *all->words);
  assert_ok(tarn_rendezvous_create(all->plan->ranks, &meeting));
  fflush(NULL);
  for (size_t rank = 0; rank < all->plan->ranks; rank++) {
    all->children[rank] = fork();
    require(all->children[rank] >= 0);
    my_rank = rank;
    if (all->children[rank] == 0)
      be_rank(all->plan, meeting, &all->words[rank], before);
  }
  tarn_rendezvous_destroy(meeting);
}

static void see_good_end(const cast *all, size_t rank, int end) {
  if (WIFSIGNALED(end) && WTERMSIG(end) == SIGALRM)
    complain(all, rank, "hangs");
  if (!WIFEXITED(end) || WEXITSTATUS(end) != 0) complain(all, rank, "fails");
}

static void wait_for_others(const cast *all) {
  for (size_t rank = 0; rank < all->plan->ranks; rank++) {
    int end = 0;
    if (rank == all->plan->victim) continue;
    require(waitpid(all->children[rank], &end, 0) == all->children[rank]);
    see_good_end(all, rank, end);
  }
}

// --- what they were told ---------------------------------------------------

static bool names(const scene_word *word, size_t rank) {
  char text[32];
  snprintf(text, sizeof text, "rank %zu ", rank);
  return strstr(word->text, text) != NULL;
}

static bool is_too_slow(const cast *all) {
  if (!all->plan->stops) return false;
  for (size_t rank = 0; rank < all->plan->ranks; rank++) {
    const scene_word *word = &all->words[rank];
    if (word->status != TARN_E_TIMEOUT) continue;
    if (all->struck == 0 || word->answered < all->struck) return true;
    if (!names(word, all->plan->victim)) return true;
  }
  return false;
}

static void see_word(const cast *all, size_t rank, strike_end *end) {
  const scene_word *word = &all->words[rank];
  tarn_status expected = all->plan->stops ? TARN_E_TIMEOUT : TARN_E_PEER_LOST;
  if (word->status == TARN_OK) return;
  if (all->struck == 0) complain(all, rank, "was told, and nobody was struck");
  if (word->status != expected) complain(all, rank, "was told something else");
  if (!names(word, all->plan->victim))
    complain(all, rank, "was told another rank");
  double from = word->called > all->struck ? word->called : all->struck;
  double waited = word->answered - from;
  if (waited > end->worst_s) end->worst_s = waited;
  end->told++;
}

static void see_words(const cast *all, strike_end *end) {
  const char *text = NULL;
  for (size_t rank = 0; rank < all->plan->ranks; rank++) {
    if (rank == all->plan->victim) continue;
    see_word(all, rank, end);
    if (all->words[rank].status == TARN_OK) continue;
    if (text != NULL && strcmp(all->words[rank].text, text) != 0)
      complain(all, rank, "was told in other words");
    text = all->words[rank].text;
  }
}

// --- the strike ------------------------------------------------------------

static bool strike_victim(cast *all, tracer *trace) {
  const strike *plan = all->plan;
  if (!tracer_run(trace, plan->step, plan->look, plan->context)) return false;
  all->struck = ranks_seconds();
  if (plan->stops) {
    tracer_stop(trace);
  } else {
    tracer_kill(trace);
  }
  return true;
}

// One that goes on is told too, or had done; it ends like any other.
static void let_go_on(const cast *all, tracer *trace) {
  size_t rank = all->plan->victim;
  tarn_status status = TARN_OK;
  tracer_continue(trace);
  require(waitpid(trace->child, &trace->end, 0) == trace->child);
  see_good_end(all, rank, trace->end);
  status = all->words[rank].status;
  if (status != TARN_OK && status != TARN_E_TIMEOUT &&
      status != TARN_E_PEER_LOST)
    complain(all, rank, "was told something else");
}

static void *shared_words(void) {
  static void *words;
  if (words == NULL) words = ranks_shared(MOST * sizeof(scene_word));
  return words;
}

strike_end strike_run(const strike *plan) {
  cast all = {.plan = plan, .words = shared_words()};
  strike_end end = {0};
  belongings before = look_around();
  require(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  start(&all);
  tracer trace = tracer_begin(all.children[plan->victim]);
  end.struck = strike_victim(&all, &trace);
  wait_for_others(&all);
  if (end.struck && plan->stops) let_go_on(&all, &trace);
  if (!end.struck) see_good_end(&all, plan->victim, trace.end);
  end.steps = trace.steps;
  end.too_slow = is_too_slow(&all);
  if (!end.too_slow) see_words(&all, &end);
  require(waitpid(-1, NULL, 0) == -1);  // no child of a child is left
  belongings after = look_around();
  require(after.descriptors == before.descriptors);
  require(after.mappings == before.mappings);
  return end;
}
