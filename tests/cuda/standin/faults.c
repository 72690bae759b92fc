// Faults: which call, and which command, is to fail.
//
// All calls are counted, by name and together. Those that only release, and
// those that make a context current, without which nothing is released, are not
// among the calls of any name: what a program holds must be given back whatever
// fails, so a sweep over all calls would only find that it cannot.
//
// A lost device is another matter: from then on every call fails, and nothing
// that is queued runs.
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "settings.h"

enum { NAMES_MAX = 160, NAME_SIZE = 64 };

// Guards all below but |owner| and |lost|.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  const char *name;
  uint64_t calls;
} names[NAMES_MAX];
static uint64_t all_calls;
static struct {
  char name[NAME_SIZE];  // empty: any
  uint64_t left;         // calls up to the one that fails; 0: none fails
  bool onwards;
  tarn__cuda_result error;
} call_fault;
static struct {
  uint64_t left;
  tarn__cuda_result error;
} command_fault, loss;
static uint64_t struck;
static bool environment_read;

static _Atomic tarn__cuda_result lost;

// The process that called cuInit; 0: none has.
static _Atomic pid_t owner;

// --- faults from the environment -------------------------------------------

static void arm_call(const char *name, uint64_t n, tarn__cuda_result error,
                     bool onwards) {
  snprintf(call_fault.name, sizeof call_fault.name, "%s", name);
  call_fault.left = n;
  call_fault.onwards = onwards;
  call_fault.error = error;
}

// NAME:N:CODE, a + behind.
static void arm_call_text(char *text) {
  char *rest = NULL;
  const char *name = strtok_r(text, ":", &rest);
  const char *n = strtok_r(NULL, ":", &rest);
  const char *code = strtok_r(NULL, ":", &rest);
  if (code == NULL) return;
  arm_call(strcmp(name, "*") == 0 ? "" : name, strtoull(n, NULL, 10),
           (tarn__cuda_result)strtoul(code, NULL, 10),
           strchr(code, '+') != NULL);
}

// N:CODE
static bool read_pair(standin_setting setting, uint64_t *out_n,
                      tarn__cuda_result *out_error) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  const char *colon = strchr(text, ':');
  if (colon == NULL) return false;
  *out_n = strtoull(text, NULL, 10);
  *out_error = (tarn__cuda_result)strtoul(colon + 1, NULL, 10);
  return true;
}

static void read_environment(void) {
  if (environment_read) return;
  environment_read = true;
  char text[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_FAIL_CALL, text);
  arm_call_text(text);
  (void)read_pair(STANDIN_FAIL_COMMAND, &command_fault.left,
                  &command_fault.error);
  (void)read_pair(STANDIN_LOSE, &loss.left, &loss.error);
}

// --- counting --------------------------------------------------------------

static uint64_t *count_of(const char *name) {
  for (size_t i = 0; i < NAMES_MAX; i++) {
    if (names[i].name == NULL) names[i].name = name;
    if (strcmp(names[i].name, name) == 0) return &names[i].calls;
  }
  abort();  // more functions than there are
}

static bool is_apart(const char *name) {
  static const char *const PARTS[] = {
      "Free",          "Destroy",       "Release",        "Unmap",
      "Unload",        "Unregister",    "CtxPopCurrent",  "CtxPushCurrent",
      "CtxGetCurrent", "CtxSetCurrent", "ThreadExchange", "PrimaryCtxReset"};
  for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
    if (strstr(name, PARTS[i]) != NULL) return true;
  }
  return false;
}

static bool is_meant(const char *name) {
  return call_fault.name[0] == 0 ? !is_apart(name)
                                 : strcmp(call_fault.name, name) == 0;
}

static tarn__cuda_result strike(const char *name) {
  if (call_fault.left == 0 || !is_meant(name)) return TARN__CU_SUCCESS;
  if (call_fault.left > 1) {
    call_fault.left--;
    return TARN__CU_SUCCESS;
  }
  if (!call_fault.onwards) call_fault.left = 0;
  struck++;
  return call_fault.error;
}

static tarn__cuda_result count_call(const char *name) {
  ++*count_of(name);
  if (!is_apart(name)) all_calls++;
  if (loss.left > 0 && --loss.left == 0) {
    atomic_store(&lost, loss.error);
    struck++;
  }
  tarn__cuda_result now = atomic_load(&lost);
  return now != TARN__CU_SUCCESS ? now : strike(name);
}

bool standin_in_child(void) {
  pid_t process = atomic_load(&owner);
  return process != 0 && process != getpid();
}

tarn__cuda_result standin_call_may_begin(const char *name) {
  standin_set_call(name);
  if (standin_in_child()) {
    return standin_wrong(TARN__CU_ERROR_NOT_INITIALIZED,
                         "called in a child of the process that called cuInit");
  }
  pthread_mutex_lock(&lock);
  read_environment();
  tarn__cuda_result error = count_call(name);
  pthread_mutex_unlock(&lock);
  return error;
}

void standin_bind_process(void) {
  atomic_store(&owner, getpid());
}

bool standin_is_bound(void) {
  return atomic_load(&owner) != 0;
}

tarn__cuda_result standin_next_command(void) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  pthread_mutex_lock(&lock);
  if (command_fault.left > 0 && --command_fault.left == 0) {
    error = command_fault.error;
    struck++;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

tarn__cuda_result standin_lost(void) {
  return atomic_load(&lost);
}

// --- what tests say and ask ------------------------------------------------

void standin_fail_call(const char *name, uint64_t n, tarn__cuda_result error,
                       bool onwards) {
  pthread_mutex_lock(&lock);
  read_environment();
  arm_call(name != NULL ? name : "", n, error, onwards);
  pthread_mutex_unlock(&lock);
}

void standin_fail_command(uint64_t n, tarn__cuda_result error) {
  pthread_mutex_lock(&lock);
  read_environment();
  command_fault.left = n;
  command_fault.error = error;
  pthread_mutex_unlock(&lock);
}

void standin_lose(uint64_t n, tarn__cuda_result error) {
  pthread_mutex_lock(&lock);
  read_environment();
  loss.left = n;
  loss.error = error;
  if (n == 0) atomic_store(&lost, TARN__CU_SUCCESS);
  pthread_mutex_unlock(&lock);
}

uint64_t standin_fault_count(void) {
  pthread_mutex_lock(&lock);
  uint64_t result = struck;
  pthread_mutex_unlock(&lock);
  return result;
}

uint64_t standin_call_count(const char *name) {
  pthread_mutex_lock(&lock);
  uint64_t result = name != NULL ? 0 : all_calls;
  for (size_t i = 0; name != NULL && i < NAMES_MAX; i++) {
    if (names[i].name == NULL) break;
    if (strcmp(names[i].name, name) == 0) result = names[i].calls;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void standin_faults_reset(void) {
  pthread_mutex_lock(&lock);
  environment_read = true;
  arm_call("", 0, TARN__CU_SUCCESS, false);
  command_fault.left = 0;
  loss.left = 0;
  atomic_store(&lost, TARN__CU_SUCCESS);
  struck = 0;
  all_calls = 0;
  for (size_t i = 0; i < NAMES_MAX; i++)
    names[i].calls = 0;
  pthread_mutex_unlock(&lock);
}
