#include "talk_python.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static talk *run(const char *python, const char *program,
                 const char *const *arguments, char *why) {
  const char *words[TALK_PYTHON_ARGUMENTS + 4] = {python, "-c", program};
  for (size_t i = 0; arguments[i] != NULL && i < TALK_PYTHON_ARGUMENTS; i++)
    words[3 + i] = arguments[i];
  const talk_spec spec = {.words = words,
                          .name = "python3",
                          .ready = "ready",
                          .end_signal = SIGKILL};
  return talk_start(&spec, why);
}

// A Python that comes before that of the system may lack a package.
talk *talk_python_start(const char *program, const char *const *arguments,
                        char *why) {
  char second[TALK_TEXT_SIZE];
  const char *named = getenv("TARN_BENCH_PYTHON");
  if (named != NULL && *named != '\0') {
    return run(named, program, arguments, why);
  }
  talk *python = run("python3", program, arguments, why);
  if (python == NULL) {
    python = run("/usr/bin/python3", program, arguments, second);
  }
  if (python != NULL) why[0] = '\0';
  return python;
}

bool talk_python_ask(talk *python, const char *question, double *out_answer,
                     char *why) {
  char line[TALK_LINE_SIZE];
  char *end = NULL;
  if (!talk_ask(python, question, line, why)) return false;
  *out_answer = strtod(line, &end);
  if (end != line && *end == '\0' && isfinite(*out_answer) && *out_answer > 0)
    return true;
  snprintf(why, TALK_TEXT_SIZE, "python3 says %.100s", line);
  return false;
}
