// Another user can neither connect to ranks, nor map what they share, nor guess
// their places: each attempt is made twice, by user nobody, who must fail, and,
// where a process may do that with its own children, by the parent of the
// ranks, so that it is seen to be a real one.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"
#include "tarn/whole.h"

enum {
  NOBODY = 65534,
  RANKS = 2,
  MOST_FDS = 48,
  MOST_TRIES = 512,
  LIMIT_S = 60,
  FEWEST = 20
};

static const size_t MIB = (size_t)1 << 20;

// A rank, and what there is to get.
typedef struct target {
  pid_t pid;
  uint64_t bytes;  // where its whole is
  uint64_t stack;  // and something of its own
  int fds[MOST_FDS];
  char links[MOST_FDS][64];
  size_t fd_count;
} target;

typedef struct attempt {
  char text[96];
  int reason;  // errno; 0: it succeeded
} attempt;

// What all processes of this test share.
typedef struct board {
  target targets[RANKS];
  atomic_uint ready;   // ranks that wait to be attacked
  atomic_uint attack;  // the attacker may begin
  atomic_uint done;    // ranks may go on
  attempt tries[MOST_TRIES];
  size_t count;
} board;

static board *shared;

// --- attempts --------------------------------------------------------------

static void note(const char *what, int detail, int reason) {
  require(shared->count < MOST_TRIES);
  attempt *made = &shared->tries[shared->count++];
  made->reason = reason;
  if (detail < 0) {
    snprintf(made->text, sizeof made->text, "%s", what);
  } else {
    snprintf(made->text, sizeof made->text, "%s %d", what, detail);
  }
}

// What a call that answers -1 came to.
static int reason_of(long result) {
  return result < 0 ? errno : 0;
}

static int reason_of_fd(long fd) {
  int reason = reason_of(fd);
  if (fd >= 0) close((int)fd);
  return reason;
}

static int open_in_proc(pid_t pid, const char *name, int flags) {
  char path[96];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return reason_of_fd(open(path, flags | O_CLOEXEC));
}

// Descriptors of the rank, each by its number. A socket cannot be opened by its
// name in /proc, not even by its owner.
static void try_descriptors(const target *rank, bool owner) {
  int process = (int)syscall(SYS_pidfd_open, rank->pid, 0);
  require(process >= 0);
  for (size_t i = 0; i < rank->fd_count; i++) {
    char name[32];
    char link[64];
    char path[64];
    int fd = rank->fds[i];
    bool is_socket = strncmp(rank->links[i], "socket:", 7) == 0;
    snprintf(name, sizeof name, "fd/%d", fd);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)rank->pid, name);
    if (!owner || !is_socket)
      note("open /proc/PID/fd of descriptor", fd,
           open_in_proc(rank->pid, name, O_RDONLY));
    note("readlink of descriptor", fd,
         reason_of(readlink(path, link, sizeof link)));
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    note("open /proc/PID/fdinfo of descriptor", fd,
         open_in_proc(rank->pid, name, O_RDONLY));
    note("pidfd_getfd of descriptor", fd,
         reason_of_fd(syscall(SYS_pidfd_getfd, process, fd, 0)));
  }
  close(process);
}

static void try_files_of(const target *rank) {
  static const char *const names[] = {"environ", "maps", "mem", "auxv"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char what[64];
    snprintf(what, sizeof what, "open /proc/PID/%s", names[i]);
    note(what, -1, open_in_proc(rank->pid, names[i], O_RDONLY));
  }
  note("list /proc/PID/fd", -1,
       open_in_proc(rank->pid, "fd", O_RDONLY | O_DIRECTORY));
  note("list /proc/PID/map_files", -1,
       open_in_proc(rank->pid, "map_files", O_RDONLY | O_DIRECTORY));
}

static void try_memory_of(const target *rank) {
  unsigned char byte = 0;
  struct iovec here = {&byte, 1};
  struct iovec table = {(void *)(uintptr_t)rank->bytes, 1};
  struct iovec stack = {(void *)(uintptr_t)rank->stack, 1};
  note("process_vm_readv of the whole", -1,
       reason_of(process_vm_readv(rank->pid, &here, 1, &table, 1, 0)));
  note("process_vm_writev to the whole", -1,
       reason_of(process_vm_writev(rank->pid, &here, 1, &table, 1, 0)));
  note("process_vm_readv of the stack", -1,
       reason_of(process_vm_readv(rank->pid, &here, 1, &stack, 1, 0)));
}

static void try_to_meddle(const target *rank) {
  struct rlimit limit;
  note("kill with signal 0", -1, reason_of(kill(rank->pid, 0)));
  note("prlimit", -1,
       reason_of(prlimit(rank->pid, RLIMIT_NOFILE, NULL, &limit)));
  note("setpriority", -1,
       reason_of(setpriority(PRIO_PROCESS, (id_t)rank->pid, 0)));
  note("move_pages", -1,
       reason_of(syscall(SYS_move_pages, rank->pid, 0, NULL, NULL, NULL, 0)));
}

static void try_to_trace(const target *rank) {
  note("PTRACE_ATTACH", -1,
       reason_of(ptrace(PTRACE_ATTACH, rank->pid, NULL, NULL)));
  note("PTRACE_SEIZE", -1,
       reason_of(ptrace(PTRACE_SEIZE, rank->pid, NULL, NULL)));
}

// --- names -----------------------------------------------------------------

static int connect_to(const char *name, size_t size) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  require(fd >= 0 && size <= sizeof address.sun_path);
  memcpy(address.sun_path, name, size);
  socklen_t length = (socklen_t)(sizeof address.sun_family + size);
  int reason = reason_of(connect(fd, (struct sockaddr *)&address, length));
  close(fd);
  return reason;
}

static int send_to_nobody_known(void) {
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  require(fd >= 0);
  int reason = reason_of(send(fd, "message", 6, MSG_NOSIGNAL));
  close(fd);
  return reason;
}

static void try_names(void) {
  static const char abstract[] = "\0tarn";
  static const char longer[] = "\0tarn:comm";
  note("connect to an abstract socket 'tarn'", -1,
       connect_to(abstract, sizeof abstract - 1));
  note("connect to an abstract socket 'tarn:comm'", -1,
       connect_to(longer, sizeof longer - 1));
  note("connect to a socket '/tmp/tarn'", -1,
       connect_to("/tmp/tarn", sizeof "/tmp/tarn"));
  note("send on a socket of its own", -1, send_to_nobody_known());
  note("shm_open '/tarn:comm'", -1, reason_of_fd(shm_open("/tarn:comm", 0, 0)));
  note("shm_open '/tarn-whole'", -1,
       reason_of_fd(shm_open("/tarn-whole", 0, 0)));
  note("open '/memfd:tarn:comm'", -1,
       reason_of_fd(open("/memfd:tarn:comm", O_RDONLY | O_CLOEXEC)));
  note("shmget with the key 'tarn'", -1,
       reason_of(shmget((key_t)0x7461726e, 1, 0)));
}

// The inode behind "socket:[", 0 if it is no socket.
static unsigned long inode_of(const char *link) {
  unsigned long inode = 0;
  return sscanf(link, "socket:[%lu]", &inode) == 1 ? inode : 0;
}

// Whether the socket has a name in the system's list, which is last in its
// line; no line: it is not listed at all.
static bool has_name(unsigned long inode) {
  char line[512];
  bool named = false;
  FILE *list = fopen("/proc/net/unix", "re");
  if (list == NULL) return false;
  while (fgets(line, sizeof line, list) != NULL) {
    unsigned long number = 0;
    char name[256] = "";
    if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %255s", &number, name) >= 1 &&
        number == inode && name[0] != '\0')
      named = true;
  }
  fclose(list);
  return named;
}

static void try_sockets_of(const target *rank) {
  for (size_t i = 0; i < rank->fd_count; i++) {
    unsigned long inode = inode_of(rank->links[i]);
    if (inode != 0)
      note("find a name to connect to, of socket", rank->fds[i],
           has_name(inode) ? 0 : ENOENT);
  }
}

// --- guesses ---------------------------------------------------------------

static int take_place(const char *value) {
  tarn_comm *comm = NULL;
  require(setenv("TARN_COMM", value, 1) == 0);
  tarn_status status = tarn_comm_from_environment(NULL, &comm);
  require((comm != NULL) == (status == TARN_OK));
  return status == TARN_OK ? 0 : EINVAL;
}

static int take_place_of_fd(int fd) {
  char value[TARN_RENDEZVOUS_VARIABLE];
  snprintf(value, sizeof value, "0:2:%d:%032d", fd, 0);
  int reason = take_place(value);
  if (fd >= 0) close(fd);
  return reason;
}

static int own_memory(const char *name, int seals) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(fd >= 0);
  require(ftruncate(fd, (off_t)(2 * MIB)) == 0);
  if (seals != 0) require(fcntl(fd, F_ADD_SEALS, seals) == 0);
  return fd;
}

// A meeting of its own, whose token it does not know.
static int guess_token(void) {
  char variable[TARN_RENDEZVOUS_VARIABLE];
  tarn_rendezvous *meeting = NULL;
  assert_ok(tarn_rendezvous_create(1, &meeting));
  assert_ok(tarn_rendezvous_hand_over(meeting, 0, variable, sizeof variable));
  char *last = variable + strlen(variable) - 1;
  *last = *last == '0' ? '1' : '0';
  int reason = take_place(strchr(variable, '=') + 1);
  tarn_rendezvous_destroy(meeting);
  return reason;
}

static void try_guesses(void) {
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  note("TARN_COMM without descriptors", -1, take_place_of_fd(-1));
  note("TARN_COMM with a descriptor that is not open", -1,
       take_place("0:2:999:00000000000000000000000000000000"));
  note("TARN_COMM with a file", -1,
       take_place_of_fd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  note("TARN_COMM with memory that may shrink", -1,
       take_place_of_fd(own_memory("tarn:comm", 0)));
  note("TARN_COMM with memory of another size", -1,
       take_place_of_fd(own_memory("tarn:comm", seals)));
  note("TARN_COMM with a guessed token", -1, guess_token());
}

// --- the ranks -------------------------------------------------------------

static tarn_whole *make_whole(tarn_comm *comm, tarn_place place) {
  tarn_whole_options options = {.struct_size = sizeof options,
                                .type = TARN_WHOLE_CONTINUOUS,
                                .place = place,
                                .size = MIB / 16};
  tarn_whole *whole = NULL;
  assert_ok(tarn_whole_create(comm, &options, &whole));
  return whole;
}

static void wait_for(atomic_uint *word, unsigned value) {
  while (atomic_load(word) < value)
    usleep(1000);
}

static void be_attacked(tarn_comm *comm, void *context) {
  tarn_device *cpu = NULL;
  tarn_addr bytes = 0;
  unsigned char own = 0;
  size_t rank = tarn_comm_rank(comm);
  (void)context;
  assert_ok(tarn_device_open("cpu:0", &cpu));
  tarn_whole *on_host = make_whole(comm, TARN_HOST);
  tarn_whole *on_device = make_whole(comm, tarn_place_on(cpu));
  assert_ok(tarn_whole_global(on_host, &bytes));
  shared->targets[rank].pid = getpid();
  shared->targets[rank].bytes = bytes;
  shared->targets[rank].stack = (uintptr_t)&own;
  atomic_fetch_add(&shared->ready, 1);
  wait_for(&shared->done, 1);
  // It has done them no harm.
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_whole_destroy(on_device));
  assert_ok(tarn_whole_destroy(on_host));
  assert_ok(tarn_comm_destroy(comm));
  assert_ok(tarn_device_close(cpu));
  _exit(0);
}

// --- the attackers ---------------------------------------------------------

// Memory, mailboxes, processes; not what the test was started with.
static bool is_of_ranks(const char *link) {
  return strncmp(link, "/memfd:", 7) == 0 || strncmp(link, "socket:", 7) == 0 ||
         strncmp(link, "anon_inode:[pidfd]", 18) == 0 ||
         strncmp(link, "pidfd:", 6) == 0;
}

static void list_descriptors(target *rank) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)rank->pid);
  DIR *folder = opendir(path);
  require(folder != NULL);
  memset(rank->links, 0, sizeof rank->links);
  for (struct dirent *entry = readdir(folder); entry != NULL;
       entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    int fd = atoi(entry->d_name);
    require(rank->fd_count < MOST_FDS);
    char *link = rank->links[rank->fd_count];
    ssize_t size =
        readlinkat(dirfd(folder), entry->d_name, link, sizeof *rank->links - 1);
    require(size > 0);
    if (is_of_ranks(link)) rank->fds[rank->fd_count++] = fd;
  }
  closedir(folder);
}

static void become_nobody(void) {
  require(setgroups(0, NULL) == 0);
  require(setresgid(NOBODY, NOBODY, NOBODY) == 0);
  require(setresuid(NOBODY, NOBODY, NOBODY) == 0);
  require(getuid() == NOBODY && setuid(0) != 0);
}

static _Noreturn void attack(void) {
  alarm(LIMIT_S);
  wait_for(&shared->attack, 1);
  become_nobody();
  for (size_t rank = 0; rank < RANKS; rank++) {
    const target *at = &shared->targets[rank];
    try_descriptors(at, false);
    try_files_of(at);
    try_memory_of(at);
    try_to_meddle(at);
    try_to_trace(at);
    try_sockets_of(at);
  }
  try_names();
  try_guesses();
  _exit(0);
}

// What the parent of the ranks may do.
static void attack_as_owner(void) {
  for (size_t rank = 0; rank < RANKS; rank++) {
    const target *at = &shared->targets[rank];
    try_descriptors(at, true);
    try_files_of(at);
    try_memory_of(at);
    try_to_meddle(at);
  }
}

// --- what came of it -------------------------------------------------------

static void see_all_succeed(void) {
  for (size_t i = 0; i < shared->count; i++) {
    const attempt *made = &shared->tries[i];
    ck_assert_msg(made->reason == 0, "not even the owner can: %s: %s",
                  made->text, strerror(made->reason));
  }
}

static void see_all_fail(void) {
  for (size_t i = 0; i < shared->count; i++) {
    const attempt *made = &shared->tries[i];
    printf("%-48s %s\n", made->text, strerror(made->reason));
    ck_assert_msg(made->reason != 0, "nobody can: %s", made->text);
  }
  printf("%zu attempts of another user, all failed\n", shared->count);
  ck_assert_uint_ge(shared->count, FEWEST);
}

// The attacker is there before the meeting is, and inherits nothing of it.
static pid_t begin(void (*work)(void)) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) work();
  return child;
}

static _Noreturn void watch_ranks(void) {
  alarm(LIMIT_S);
  ranks_run(&(ranks_plan){.size = RANKS, .body = be_attacked});
  _exit(0);
}

static void see_good_end(pid_t child) {
  int end = 0;
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  ck_assert_int_eq(end, 0);
}

TEST(another_user_gets_nothing) {
  shared = ranks_shared(sizeof *shared);
  pid_t attacker = begin(attack);
  pid_t ranks = begin(watch_ranks);
  wait_for(&shared->ready, RANKS);
  for (size_t rank = 0; rank < RANKS; rank++)
    list_descriptors(&shared->targets[rank]);
  attack_as_owner();
  see_all_succeed();
  shared->count = 0;
  atomic_store(&shared->attack, 1);
  see_good_end(attacker);
  atomic_store(&shared->done, 1);
  see_good_end(ranks);
  see_all_fail();
}

int main(void) {
  if (getuid() != 0) {
    return skip_program("comm_security", "only root can become another user");
  }
  return run_tests();
}
