// Marked lines.
//
// A source is the end of a pipe, and the line that has begun there; it never
// holds a newline, and never a whole LABELS_LINE. A sink is one of the tool's
// two outputs, with the lines that wait for it. The tool writes only when
// poll reports room, and at most PIPE_BUF bytes: a reader that sleeps does not
// keep the tool from its signals.
#include "labels.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STREAMS = 2, WAITING_MOST = 256 << 10, MARK_SIZE = 24 };

typedef struct sink {
  int fd;
  const char *name;
  char *bytes;  // from |begin| to |end| they wait
  size_t begin;
  size_t end;
  size_t room;
  int error;  // as in errno, of a write that failed: all more is dropped
  const struct pollfd *poll;  // its entry, or NULL
} sink;

typedef struct source {
  int fd;                // -1: not open, or at its end
  int child;             // the end that is written to, until it is let go
  char *line;            // room for LABELS_LINE
  size_t used;           // of it
  char mark[MARK_SIZE];  // "[2] "
  sink *to;
  const struct pollfd *poll;  // its entry, or NULL
} source;

struct labels {
  size_t count;
  source *sources;  // STREAMS of each program
  sink sinks[STREAMS];
};

static size_t source_count(const labels *l) {
  return l->count * STREAMS;
}

// --- sinks -----------------------------------------------------------------

static size_t waiting(const sink *s) {
  return s->end - s->begin;
}

static void make_room(sink *s, size_t size) {
  if (s->room - s->end >= size) return;
  size_t kept = waiting(s);
  size_t room = 2 * (kept + size);
  char *bytes = tool_array(room, 1);
  if (kept > 0) memcpy(bytes, s->bytes + s->begin, kept);
  free(s->bytes);
  s->bytes = bytes;
  s->begin = 0;
  s->end = kept;
  s->room = room;
}

static void append(sink *s, const char *bytes, size_t size) {
  memcpy(s->bytes + s->end, bytes, size);
  s->end += size;
}

// |line| is without its newline.
static void put_line(sink *s, const char *mark, const char *line, size_t size) {
  size_t mark_size = strlen(mark);
  if (s->error != 0) return;
  make_room(s, mark_size + size + 1);
  append(s, mark, mark_size);
  append(s, line, size);
  append(s, "\n", 1);
}

// The bytes of one write: whole lines, if one ends there, so that another
// writer cannot get into the middle of a line.
static size_t piece(const sink *s) {
  size_t size = waiting(s);
  if (size <= PIPE_BUF) return size;
  const char *last = memrchr(s->bytes + s->begin, '\n', PIPE_BUF);
  return last != NULL ? (size_t)(last - (s->bytes + s->begin)) + 1 : PIPE_BUF;
}

static void write_piece(sink *s) {
  ssize_t wrote = write(s->fd, s->bytes + s->begin, piece(s));
  if (wrote > 0) {
    s->begin += (size_t)wrote;
    if (waiting(s) == 0) s->begin = s->end = 0;
  } else if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
    s->error = errno;
    s->begin = s->end = 0;
  }
}

static bool is_ready(const sink *s, int timeout_ms) {
  struct pollfd out = {.fd = s->fd, .events = POLLOUT};
  int ready;
  do {
    ready = poll(&out, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

// Writes until nothing waits, or it would have to wait longer.
static void push(sink *s, int timeout_ms) {
  while (waiting(s) > 0 && is_ready(s, timeout_ms))
    write_piece(s);
}

// --- sources ---------------------------------------------------------------

static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// Passes on the lines that have ended among the first |size| bytes.
static void cut_lines(source *s, size_t size) {
  char *begin = s->line, *end = s->line + size;
  for (;;) {
    char *newline = memchr(begin, '\n', (size_t)(end - begin));
    if (newline == NULL) break;
    put_line(s->to, s->mark, begin, (size_t)(newline - begin));
    begin = newline + 1;
  }
  s->used = (size_t)(end - begin);
  memmove(s->line, begin, s->used);
}

static void pass_held(source *s) {
  if (s->used > 0) put_line(s->to, s->mark, s->line, s->used);
  s->used = 0;
}

static void end_source(source *s) {
  pass_held(s);
  close_end(&s->fd);
}

// Reads at most |most| bytes. Returns how many; 0 at the end, and where nothing
// is there.
static size_t take_in(source *s, size_t most) {
  size_t room = LABELS_LINE - s->used;
  if (s->line == NULL) s->line = tool_array(LABELS_LINE, 1);
  ssize_t got = read(s->fd, s->line + s->used, room < most ? room : most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    end_source(s);
    return 0;
  }
  cut_lines(s, s->used + (size_t)got);
  if (s->used == LABELS_LINE) pass_held(s);
  return (size_t)got;
}

// Takes in what is there by now, and the end if that has come; no more, however
// fast others write on.
static void take_rest(source *s, int timeout_ms) {
  int there = 0;
  if (s->fd < 0 || ioctl(s->fd, FIONREAD, &there) != 0) return;
  for (size_t left = (size_t)there; left > 0 && s->fd >= 0;) {
    size_t got = take_in(s, left);
    left -= got;
    push(s->to, timeout_ms);
    if (got == 0) break;
  }
  if (s->fd >= 0) take_in(s, LABELS_LINE);
}

// A program whose output cannot be written any more gets SIGPIPE.
static void close_refused(labels *l) {
  for (size_t i = 0; i < source_count(l); i++) {
    if (l->sources[i].to->error != 0) close_end(&l->sources[i].fd);
  }
}

// --- the whole -------------------------------------------------------------

labels *labels_create(size_t count) {
  labels *l = tool_array(1, sizeof *l);
  l->count = count;
  l->sources = tool_array(count * STREAMS, sizeof *l->sources);
  l->sinks[0] = (sink){.fd = STDOUT_FILENO, .name = "stdout"};
  l->sinks[1] = (sink){.fd = STDERR_FILENO, .name = "stderr"};
  for (size_t i = 0; i < source_count(l); i++) {
    source *s = &l->sources[i];
    *s = (source){.fd = -1, .child = -1, .to = &l->sinks[i % STREAMS]};
    snprintf(s->mark, sizeof s->mark, "[%zu] ", i / STREAMS);
  }
  return l;
}

void labels_destroy(labels *l) {
  if (l == NULL) return;
  for (size_t i = 0; i < source_count(l); i++) {
    close_end(&l->sources[i].fd);
    close_end(&l->sources[i].child);
    free(l->sources[i].line);
  }
  for (int i = 0; i < STREAMS; i++)
    free(l->sinks[i].bytes);
  free(l->sources);
  free(l);
}

static int open_source(source *s) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  s->fd = ends[0];
  s->child = ends[1];
  return fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

int labels_open(labels *l, size_t index) {
  int error = 0;
  for (size_t i = 0; error == 0 && i < STREAMS; i++)
    error = open_source(&l->sources[index * STREAMS + i]);
  return error;
}

bool labels_redirect(labels *l, size_t index) {
  for (size_t i = 0; i < STREAMS; i++) {
    const source *s = &l->sources[index * STREAMS + i];
    if (dup2(s->child, s->to->fd) >= 0) continue;
    tool_say(NULL, "%s of rank %zu: %s", s->to->name, index, strerror(errno));
    return false;
  }
  return true;
}

void labels_let_go(labels *l, size_t index) {
  for (size_t i = 0; i < STREAMS; i++)
    close_end(&l->sources[index * STREAMS + i].child);
}

// --- while they run --------------------------------------------------------

size_t labels_watched(const labels *l) {
  return STREAMS + source_count(l);
}

static const struct pollfd *watch(struct pollfd *out, int fd, short events,
                                  size_t *count) {
  out[*count] = (struct pollfd){.fd = fd, .events = events};
  return &out[(*count)++];
}

// Without a gap: poll refuses more entries than there may be descriptors.
size_t labels_watch(labels *l, struct pollfd *out_polls) {
  size_t count = 0;
  for (int i = 0; i < STREAMS; i++) {
    sink *s = &l->sinks[i];
    s->poll = waiting(s) == 0 ? NULL : watch(out_polls, s->fd, POLLOUT, &count);
  }
  for (size_t i = 0; i < source_count(l); i++) {
    source *s = &l->sources[i];
    bool is_wanted = s->fd >= 0 && waiting(s->to) < WAITING_MOST;
    s->poll = is_wanted ? watch(out_polls, s->fd, POLLIN, &count) : NULL;
  }
  return count;
}

static bool is_possible(const struct pollfd *poll) {
  return poll != NULL && poll->revents != 0;
}

void labels_attend(labels *l) {
  for (int i = 0; i < STREAMS; i++) {
    if (is_possible(l->sinks[i].poll)) write_piece(&l->sinks[i]);
  }
  close_refused(l);
  for (size_t i = 0; i < source_count(l); i++) {
    source *s = &l->sources[i];
    if (s->fd >= 0 && is_possible(s->poll)) take_in(s, LABELS_LINE);
  }
}

void labels_say(labels *l, const tool_verb *verb, const char *format, ...) {
  sink *s = &l->sinks[STREAMS - 1];
  char mark[MARK_SIZE], text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  snprintf(mark, sizeof mark, "tarn %s: ", verb->name);
  put_line(s, mark, text, strlen(text));
  push(s, 0);
}

void labels_drain(labels *l, size_t index) {
  for (size_t i = 0; i < STREAMS; i++) {
    take_rest(&l->sources[index * STREAMS + i], 0);
    push(&l->sinks[i], 0);
  }
  close_refused(l);
}

static bool say_errors(const labels *l, const tool_verb *verb) {
  bool good = true;
  for (int i = 0; i < STREAMS; i++) {
    if (l->sinks[i].error == 0) continue;
    tool_say(verb, "the output could not be written to %s: %s",
             l->sinks[i].name, strerror(l->sinks[i].error));
    good = false;
  }
  return good;
}

bool labels_finish(labels *l, const tool_verb *verb) {
  for (size_t i = 0; i < source_count(l); i++) {
    source *s = &l->sources[i];
    take_rest(s, -1);
    end_source(s);
    push(s->to, -1);
  }
  for (int i = 0; i < STREAMS; i++)
    push(&l->sinks[i], -1);
  return say_errors(l, verb);
}
