// Runs of a program of Python, which answers with one number.
#include "record_python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/process.h"

enum { WORDS_MOST = 12, ANSWER_SIZE = PATH_MAX };

static const char script[] =
    "import sys, time\n"
    "blocks = [None] * 64\n"
    "def allocate(depth, size):\n"
    "    return allocate(depth - 1, size) if depth else bytearray(size)\n"
    "def work(count):\n"
    "    state = 88172645463325252\n"
    "    for _ in range(count):\n"
    "        state ^= state << 13 & (1 << 64) - 1\n"
    "        state ^= state >> 7\n"
    "        state ^= state << 17 & (1 << 64) - 1\n"
    "        least = 1 << 16 + state % 4\n"
    "        size = least + (state >> 8) % least\n"
    "        blocks[state >> 32 & 63] = allocate(3 + (state >> 40) % 16, "
    "size)\n"
    "count = int(sys.argv[1])\n"
    "begin = time.process_time()\n"
    "work(count)\n"
    "print((time.process_time() - begin) * 1e9 / count)\n";

static bool fail(char *why, const char *what, const char *reason) {
  snprintf(why, RECORD_PYTHON_TEXT, "%.60s: %.120s", what, reason);
  return false;
}

// ---------------------------------------------------------------------------
// Running
// ---------------------------------------------------------------------------

typedef struct setting {
  const record_python *python;
  record_python_way how;
} setting;

// In the new process.
static void set_recorder(void *context) {
  const setting *s = context;
  if (s->how != RECORD_PYTHON_STACKS && s->how != RECORD_PYTHON_FRAMES) return;
  setenv("LD_PRELOAD", s->python->recorder, 1);
  setenv("TARN_RECORD_OUT", s->python->out, 1);
  setenv("TARN_RECORD_THRESHOLD", "65536", 1);
  setenv("TARN_RECORD_STACKS", "1", 1);
  setenv("TARN_RECORD_PYTHON", s->how == RECORD_PYTHON_FRAMES ? "1" : "0", 1);
  unsetenv("TARN_RECORD_PID");
}

// The first line of what |words| print.
static bool ask(const setting *s, const char *const *words, char *answer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  process_spec spec = {.words = words,
                       .prepare = set_recorder,
                       .context = (void *)(uintptr_t)s,
                       .out = ends[1],
                       .err = PROCESS_NOWHERE};
  pid_t pid = process_start(&spec);
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  bool told = in != NULL && fgets(answer, ANSWER_SIZE, in) != NULL;
  if (in != NULL) {
    fclose(in);
  } else {
    close(ends[0]);
  }
  bool did_well = pid > 0 && process_did_well(process_wait(pid, 0, NULL));
  if (told) answer[strcspn(answer, "\n")] = '\0';
  return told && did_well;
}

static bool has_recorded(const record_python *p) {
  struct stat file;
  return stat(p->out, &file) == 0 && file.st_size > 0;
}

bool record_python_run(const record_python *p, record_python_way how,
                       double *out_ns, char *why) {
  char answer[ANSWER_SIZE];
  char count[32];
  const char *words[WORDS_MOST] = {p->program, p->script, count};
  const char *peer[WORDS_MOST] = {p->program, "-m",      "memray", "run",
                                  "--native", "-q",      "-f",     "-o",
                                  p->out,     p->script, count};
  const setting s = {p, how};
  snprintf(count, sizeof count, "%llu", (unsigned long long)p->allocations);
  (void)unlink(p->out);
  if (!ask(&s, how == RECORD_PYTHON_MEMRAY ? peer : words, answer))
    return fail(why, p->program, "it did not end as it should");
  *out_ns = strtod(answer, NULL);
  if (*out_ns <= 0) return fail(why, p->program, answer);
  return how == RECORD_PYTHON_NONE || has_recorded(p) ||
         fail(why, p->program, "the recorder has written nothing");
}

// ---------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------

// The true program: a wrapper of that name would be recorded in its place.
static bool find_program(record_python *p, const char *name) {
  const char *words[] = {name, "-c", "import sys; print(sys.executable)", NULL};
  const setting none = {p, RECORD_PYTHON_NONE};
  return ask(&none, words, p->program) && p->program[0] == '/';
}

static bool find_any_program(record_python *p) {
  const char *chosen = getenv("TARN_BENCH_PYTHON");
  if (chosen != NULL) return find_program(p, chosen);
  return find_program(p, "python3") || find_program(p, "/usr/bin/python3");
}

static bool find_memray(const record_python *p) {
  char answer[ANSWER_SIZE];
  const char *words[] = {p->program, "-c",
                         "import memray; print(memray.__version__)", NULL};
  const setting none = {p, RECORD_PYTHON_NONE};
  return ask(&none, words, answer);
}

static bool write_script(const record_python *p, char *why) {
  FILE *file = fopen(p->script, "w");
  if (file == NULL) return fail(why, p->script, strerror(errno));
  bool written = fputs(script, file) >= 0;
  written = fclose(file) == 0 && written;
  return written || fail(why, p->script, strerror(errno));
}

bool record_python_begin(record_python *p, const char *folder, char *why) {
  snprintf(p->script, sizeof p->script, "%s/work.py", folder);
  snprintf(p->out, sizeof p->out, "%s/python.trace", folder);
  if (!find_any_program(p)) {
    p->program[0] = '\0';
    return fail(why, "not installed", "python3");
  }
  p->has_memray = find_memray(p);
  return write_script(p, why);
}

void record_python_end(const record_python *p) {
  (void)unlink(p->script);
  (void)unlink(p->out);
}
