// Faults: which call, and which command, is to fail.
//
// All calls are counted, by name and together. Those that only release are not
// among the calls of any name: what a program holds must be given back whatever
// fails, so a sweep over all calls would only find that it cannot.
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

// Guards all below but |owner|.
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
  cl_int error;
} call_fault;
static struct {
  uint64_t left;
  cl_int status;
} command_fault;
static uint64_t struck;
static bool environment_read;

// The process that asked for devices; 0: none has.
static _Atomic pid_t owner;

// --- faults from the environment -------------------------------------------

static void arm_call(const char *name, uint64_t n, cl_int error, bool onwards) {
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
           (cl_int)strtol(code, NULL, 10), strchr(code, '+') != NULL);
}

// N:STATUS
static void arm_command_text(const char *text) {
  const char *colon = strchr(text, ':');
  if (colon == NULL) return;
  command_fault.left = strtoull(text, NULL, 10);
  command_fault.status = (cl_int)strtol(colon + 1, NULL, 10);
}

static void read_environment(void) {
  if (environment_read) return;
  environment_read = true;
  char text[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_FAIL_CALL, text);
  arm_call_text(text);
  standin_text(STANDIN_FAIL_COMMAND, text);
  arm_command_text(text);
}

// --- counting --------------------------------------------------------------

static uint64_t *count_of(const char *name) {
  for (size_t i = 0; i < NAMES_MAX; i++) {
    if (names[i].name == NULL) names[i].name = name;
    if (strcmp(names[i].name, name) == 0) return &names[i].calls;
  }
  abort();  // more functions than OpenCL has
}

static bool releases(const char *name) {
  return strncmp(name, "clRelease", 9) == 0 || strcmp(name, "clSVMFree") == 0 ||
         strcmp(name, "clMemFreeINTEL") == 0 ||
         strcmp(name, "clMemBlockingFreeINTEL") == 0;
}

static bool is_meant(const char *name) {
  return call_fault.name[0] == 0 ? !releases(name)
                                 : strcmp(call_fault.name, name) == 0;
}

static cl_int count_call(const char *name) {
  ++*count_of(name);
  if (!releases(name)) all_calls++;
  if (call_fault.left == 0 || !is_meant(name)) return CL_SUCCESS;
  if (call_fault.left > 1) {
    call_fault.left--;
    return CL_SUCCESS;
  }
  if (!call_fault.onwards) call_fault.left = 0;
  struck++;
  return call_fault.error;
}

bool standin_in_child(void) {
  pid_t process = atomic_load(&owner);
  return process != 0 && process != getpid();
}

cl_int standin_enter(const char *name) {
  standin_set_call(name);
  if (standin_in_child()) {
    return standin_wrong(CL_OUT_OF_RESOURCES,
                         "called in a child of the process that asked for "
                         "devices: a driver would hang");
  }
  pthread_mutex_lock(&lock);
  read_environment();
  cl_int error = count_call(name);
  pthread_mutex_unlock(&lock);
  return error;
}

void standin_bind_process(void) {
  atomic_store(&owner, getpid());
}

cl_int standin_next_command(void) {
  cl_int status = CL_SUCCESS;
  pthread_mutex_lock(&lock);
  if (command_fault.left > 0 && --command_fault.left == 0) {
    status = command_fault.status;
    struck++;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

// --- what tests say and ask ------------------------------------------------

void standin_fail_call(const char *name, uint64_t n, cl_int error,
                       bool onwards) {
  pthread_mutex_lock(&lock);
  read_environment();
  arm_call(name != NULL ? name : "", n, error, onwards);
  pthread_mutex_unlock(&lock);
}

void standin_fail_command(uint64_t n, cl_int status) {
  pthread_mutex_lock(&lock);
  read_environment();
  command_fault.left = n;
  command_fault.status = status;
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
  arm_call("", 0, CL_SUCCESS, false);
  command_fault.left = 0;
  struck = 0;
  all_calls = 0;
  for (size_t i = 0; i < NAMES_MAX; i++)
    names[i].calls = 0;
  pthread_mutex_unlock(&lock);
}
