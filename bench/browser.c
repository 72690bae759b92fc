// Chromium as a child: one process group, so that none of its many processes
// outlives the call, and a folder for its profile.
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kit/process.h"

// ---------------------------------------------------------------------------
// The program
// ---------------------------------------------------------------------------

static bool is_program(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISREG(found.st_mode) &&
         access(path, X_OK) == 0;
}

// |name| in one of the folders of PATH.
static bool find_on_path(const char *name, char *out) {
  const char *at = getenv("PATH");
  while (at != NULL && *at) {
    int length = (int)strcspn(at, ":");
    int size = snprintf(out, BROWSER_PATH_SIZE, "%.*s/%s", length, at, name);
    if (size < BROWSER_PATH_SIZE && is_program(out)) return true;
    at += length;
    if (*at == ':') at++;
  }
  return false;
}

bool browser_find(char *out) {
  static const char *const names[] = {"chromium", "chromium-browser",
                                      "google-chrome", "chrome"};
  const char *named = getenv("TARN_CHROMIUM");
  if (named != NULL) {
    snprintf(out, BROWSER_PATH_SIZE, "%s", named);
    return is_program(out);
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (find_on_path(names[i], out)) return true;
  }
  return false;
}

// ---------------------------------------------------------------------------
// The child
// ---------------------------------------------------------------------------

static pid_t start(const char *program, const char *profile,
                   const char *address, int out) {
  char user_data[BROWSER_PATH_SIZE + 32];
  snprintf(user_data, sizeof user_data, "--user-data-dir=%s", profile);
  const char *words[] = {program,
                         "--headless=new",
                         "--no-sandbox",
                         "--disable-gpu",
                         "--no-first-run",
                         "--disable-extensions",
                         "--disable-sync",
                         "--disable-background-networking",
                         "--disable-component-update",
                         "--disable-dev-shm-usage",
                         "--window-size=1440,1000",
                         user_data,
                         "--dump-dom",
                         address,
                         NULL};
  process_spec spec = {.words = words,
                       .in = PROCESS_NOWHERE,
                       .out = out,
                       .err = PROCESS_NOWHERE,
                       .own_group = true};
  return process_start(&spec);
}

// All that comes out of |fd| until its end or |deadline|; NULL if that is
// first.
static char *read_all(int fd, double deadline) {
  char *text = NULL, part[65536];
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  ssize_t count = -1;
  while (process_clock() < deadline) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, 100) <= 0) continue;
    count = read(fd, part, sizeof part);
    if (count == 0 || (count < 0 && errno != EINTR)) break;
    if (count > 0) fwrite(part, 1, (size_t)count, out);
  }
  bool whole = fclose(out) == 0 && count == 0;
  if (whole) return text;
  free(text);
  return NULL;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *at) {
  (void)info;
  (void)type;
  (void)at;
  return remove(path);
}

static void end(pid_t pid, const char *profile) {
  kill(-pid, SIGKILL);
  (void)process_wait(pid, 0, NULL);
  // Some of its processes may still be writing there: try for a while.
  for (int i = 0; i < 50; i++) {
    if (nftw(profile, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0) return;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
}

static char *run(const char *program, const char *profile, const char *address,
                 double deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
  pid_t pid = start(program, profile, address, ends[1]);
  close(ends[1]);
  char *text = pid > 0 ? read_all(ends[0], deadline) : NULL;
  close(ends[0]);
  if (pid > 0) end(pid, profile);
  return text;
}

char *browser_dump(const char *program, const char *path, const char *fragment,
                   unsigned seconds, char *why, size_t why_size) {
  char profile[BROWSER_PATH_SIZE], address[BROWSER_PATH_SIZE + 64];
  const char *tmp = getenv("TMPDIR");
  snprintf(profile, sizeof profile, "%s/tarn-browser-XXXXXX",
           tmp ? tmp : "/tmp");
  snprintf(address, sizeof address, "file://%s%s", path, fragment);
  if (mkdtemp(profile) == NULL) {
    snprintf(why, why_size, "%s: %s", profile, strerror(errno));
    return NULL;
  }
  char *text = run(program, profile, address, process_clock() + seconds);
  if (text != NULL && *text) return text;
  snprintf(why, why_size, "%s: no page within %u s", program, seconds);
  free(text);
  (void)nftw(profile, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return NULL;
}
