#include "hostile_variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"

static void say(const variant *v, const outcome *o, FILE *out) {
  fprintf(out, "%s: ", v->name);
  if (o->stage == SURVIVES) {
    fputs("survives", out);
    if (v->says != NULL) fprintf(out, ", logs '%s'", v->says);
  } else {
    fprintf(out, "%s at %s: %s", tarn_status_name(o->status),
            hostile_stage_name(o->stage), o->text);
  }
}

static bool is_as_expected(const variant *v, const outcome *o) {
  const char *where = o->stage == SURVIVES ? o->log : o->text;
  return o->stage == v->stage && o->status == v->status &&
         (v->says == NULL || strstr(where, v->says) != NULL) && v->holds(o);
}

// The child: 0 if all was as expected; what happened goes to |out|.
static int meet(const variant *v, entrance by, FILE *out) {
  static outcome o;
  alarm(HOSTILE_SECONDS);
  hostile_use(v->recipe, by, &o);
  say(v, &o, out);
  bool expected = is_as_expected(v, &o);
  if (!expected) {
    fprintf(out,
            " [rounds %zu, live %ld, bytes %d, callbacks %zu, pending %zu,"
            " totals %zu %zu, min_chunk %zu, max_alloc %zu, log: %s]",
            o.rounds, o.live, o.bytes_came, o.callbacks, o.pending, o.total[0],
            o.total[1], o.info[0].min_chunk, o.info[0].max_alloc, o.log);
  }
  fflush(out);
  return expected ? 0 : 1;
}

static void meet_by(const variant *v, entrance by) {
  const char *how = by == LOADED ? "loaded" : "registered";
  FILE *out = tmpfile();
  ck_assert_ptr_nonnull(out);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(meet(v, by, out));
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  char text[8192] = "";
  rewind(out);
  size_t length = fread(text, 1, sizeof text - 1, out);
  text[length] = '\0';
  fclose(out);
  if (getenv("TARN_HOSTILE_LIST") != NULL) printf("%s: %s\n", how, text);
  ck_assert_msg(!WIFSIGNALED(status), "%s, %s: died by signal %d", v->name, how,
                WTERMSIG(status));
  ck_assert_msg(status == 0, "%s, not as expected: %s", how, text);
}

void hostile_meet(const variant *v) {
  for (entrance by = LOADED; by < ENTRANCES; by++)
    meet_by(v, by);
}
