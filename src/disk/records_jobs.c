// Blocks of records on their way.
//
//   job ──► a buffer ──► read ──► fills: into lines ──► no writes: done
//                                   │
//              whole, or read:      ▼
//              ─────────────► writes: out of lines ──► write ──► done
//
// A block is in one job at a time. What a line gets is what the block had
// before the writes, which are of other records.
#include <assert.h>
#include <string.h>

#include "base/status.h"
#include "disk/records_store.h"

// --- making them -------------------------------------------------------------

void tarn__jobs_clear(tarn__disk_block_jobs *jobs) {
  memset(jobs->table, 0, jobs->table_size * sizeof *jobs->table);
  jobs->count = jobs->started = jobs->move_count = 0;
}

static tarn__disk_block_job *job_of(tarn__disk_block_jobs *jobs,
                                    uint64_t block) {
  size_t mask = jobs->table_size - 1;
  size_t at = (size_t)(block * 0x9e3779b97f4a7c15u >> 20) & mask;
  for (; jobs->table[at] != 0; at = (at + 1) & mask) {
    tarn__disk_block_job *job = &jobs->jobs[jobs->table[at] - 1];
    if (job->block == block) return job;
  }
  assert(jobs->count < jobs->most);
  tarn__disk_block_job *made = &jobs->jobs[jobs->count++];
  *made = (tarn__disk_block_job){.block = block};
  jobs->table[at] = (uint32_t)jobs->count;
  return made;
}

static void add_move(tarn__disk_block_jobs *jobs, uint32_t *list, uint32_t line,
                     uint32_t slot) {
  assert(jobs->move_count < jobs->move_most);
  jobs->moves[jobs->move_count++] =
      (tarn__disk_record_move){.line = line, .slot = slot, .next = *list};
  *list = (uint32_t)jobs->move_count;
}

void tarn__jobs_fill(tarn__disk_records *r, uint64_t number, uint32_t line) {
  tarn__disk_block_job *job = job_of(&r->jobs, number / r->held);
  add_move(&r->jobs, &job->fills, line, (uint32_t)(number % r->held));
}

static void add_write(tarn__disk_records *r, tarn__disk_block_job *job,
                      uint32_t slot, uint32_t line) {
  add_move(&r->jobs, &job->writes, line, slot);
  job->write_count++;
}

// A move is kept for each line that the sieve has still to name.
static void gather(tarn__disk_records *r, tarn__disk_block_job *job) {
  size_t count = tarn__records_in(r, job->block);
  for (size_t slot = 0; slot < count; slot++) {
    uint32_t line = 0;
    if (r->jobs.move_count + r->jobs.most >= r->jobs.move_most) return;
    if (tarn__sieve_take(r->sieve, job->block * r->held + slot, &line))
      add_write(r, job, (uint32_t)slot, line);
  }
}

void tarn__jobs_write(tarn__disk_records *r, uint64_t number, uint32_t line) {
  tarn__disk_block_job *job = job_of(&r->jobs, number / r->held);
  bool first = job->writes == 0;
  add_write(r, job, (uint32_t)(number % r->held), line);
  if (first) gather(r, job);
}

// --- doing them --------------------------------------------------------------

static unsigned char *slot_of(const tarn__disk_records *r,
                              const tarn__disk_block_room *room,
                              const tarn__disk_record_move *move) {
  return (unsigned char *)room->request.data + move->slot * r->shape.size;
}

static void end_fills(tarn__disk_records *r, const tarn__disk_block_room *room,
                      bool ok) {
  const tarn__disk_record_move *move = NULL;
  for (uint32_t i = room->job->fills; i != 0; i = move->next) {
    move = &r->jobs.moves[i - 1];
    if (ok) {
      memcpy(tarn__records_line(r, move->line), slot_of(r, room, move),
             r->shape.size);
    }
    tarn__sieve_filled(r->sieve, &move->line, 1, ok);
  }
}

static void end_writes(tarn__disk_records *r, const tarn__disk_block_room *room,
                       bool ok) {
  const tarn__disk_record_move *move = NULL;
  for (uint32_t i = room->job->writes; i != 0; i = move->next) {
    move = &r->jobs.moves[i - 1];
    tarn__sieve_written(r->sieve, move->line, ok);
  }
  if (ok) r->tally.records_written += room->job->write_count;
}

static void start_write(tarn__disk_records *r, tarn__disk_block_room *room) {
  const tarn__disk_record_move *move = NULL;
  for (uint32_t i = room->job->writes; i != 0; i = move->next) {
    move = &r->jobs.moves[i - 1];
    memcpy(slot_of(r, room, move), tarn__records_line(r, move->line),
           r->shape.size);
  }
  r->tally.blocks_written++;
  r->tally.bytes_written += r->block;
  tarn__blocks_write(r->blocks, &room->request);
}

static void start_read(tarn__disk_records *r, tarn__disk_block_room *room) {
  if (room->job->fills != 0) {
    r->tally.blocks_read++;
  } else {
    r->tally.blocks_merged++;
  }
  r->tally.bytes_read += r->block;
  tarn__blocks_read(r->blocks, &room->request);
}

static bool is_whole(const tarn__disk_records *r,
                     const tarn__disk_block_job *job) {
  return job->write_count == tarn__records_in(r, job->block);
}

static void start(tarn__disk_records *r, tarn__disk_block_room *room,
                  tarn__disk_block_job *job) {
  room->job = job;
  room->request.block = job->block;
  if (++r->rooms_used > r->tally.most_under_way)
    r->tally.most_under_way = r->rooms_used;
  if (is_whole(r, job)) {
    memset(room->request.data, 0, r->block);
    start_write(r, room);
  } else {
    start_read(r, room);
  }
}

static void end(tarn__disk_records *r, tarn__disk_block_room *room) {
  room->job = NULL;
  r->rooms_used--;
}

// A block that no write has given a place.
static void make_blank(const tarn__disk_records *r,
                       const tarn__disk_block_room *room) {
  size_t size = r->shape.size;
  unsigned char *records = room->request.data;
  if (r->blank == NULL || room->request.entry.place != 0) return;
  for (size_t i = 0; i < r->held; i++)
    memcpy(records + i * size, r->blank, size);
}

// A block that was read or written; it may have to be written then.
static tarn_status go_on(tarn__disk_records *r, tarn__disk_block_room *room) {
  tarn_status status = tarn__blocks_check(r->blocks, &room->request);
  bool ok = status == TARN_OK;
  bool was_read = room->request.io.action == TARN__IO_READ;
  if (was_read && ok) make_blank(r, room);
  if (was_read) end_fills(r, room, ok);
  if (was_read && ok && room->job->writes != 0) {
    start_write(r, room);
    return status;
  }
  end_writes(r, room, ok);
  end(r, room);
  return status;
}

// A buffer that is free; NULL: none is.
static tarn__disk_block_room *free_room(const tarn__disk_records *r) {
  if (r->rooms_used == r->room_count) return NULL;
  tarn__disk_block_room *room = r->rooms;
  while (room->job != NULL)
    room++;
  return room;
}

// One that is free, if need be when another job has ended.
static tarn__disk_block_room *await_room(tarn__disk_records *r,
                                         tarn__failure *failure) {
  tarn__disk_block_room *free = free_room(r);
  if (free != NULL) return free;
  for (;;) {
    tarn__disk_block_room *room = tarn__blocks_wait(r->blocks)->owner;
    tarn__failure_note(failure, go_on(r, room));
    if (room->job == NULL) return room;
  }
}

void tarn__jobs_start(tarn__disk_records *r) {
  tarn__disk_block_jobs *jobs = &r->jobs;
  tarn__disk_block_room *room = NULL;
  while (jobs->started < jobs->count && jobs->jobs[jobs->started].writes == 0 &&
         (room = free_room(r)) != NULL) {
    start(r, room, &jobs->jobs[jobs->started++]);
  }
  tarn__blocks_start(r->blocks);
}

// After a failure the rest is only ended.
tarn_status tarn__jobs_run(tarn__disk_records *r) {
  tarn__failure failure = {0};
  while (r->jobs.started < r->jobs.count) {
    tarn__disk_block_room *room = await_room(r, &failure);
    tarn__disk_block_job *job = &r->jobs.jobs[r->jobs.started++];
    if (failure.status == TARN_OK) {
      start(r, room, job);
      continue;
    }
    const tarn__disk_block_room none = {.job = job};
    end_fills(r, &none, false);
    end_writes(r, &none, false);
  }
  while (r->rooms_used > 0) {
    tarn__disk_block_room *room = tarn__blocks_wait(r->blocks)->owner;
    tarn__failure_note(&failure, go_on(r, room));
  }
  return tarn__failure_tell(&failure);
}
