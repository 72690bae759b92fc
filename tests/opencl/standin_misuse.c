// What the stand-in finds: what is left, and how it is used wrongly.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin_ground.h"

enum { SMALL = 64 };

// --- what is left ----------------------------------------------------------

static cl_uint references(cl_context context) {
  cl_uint count = 0;
  done(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count,
                        &count, NULL));
  return count;
}

TEST(what_lives_is_counted) {
  ground on = ground_with("coarse");
  cl_uint before = references(on.context);
  void *block = clSVMAlloc(on.context, 0, SMALL, 0);
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  cl_event event = clCreateUserEvent(on.context, NULL);
  ck_assert_uint_eq(references(on.context), before + 3);
  ck_assert_uint_eq(tarn_standin_live("svm"), 1);
  ck_assert_uint_eq(tarn_standin_live("buffer"), 1);
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  ck_assert_uint_eq(tarn_standin_live(NULL), 5);
  clSVMFree(on.context, block);
  done(clReleaseMemObject(buffer));
  done(clReleaseEvent(event));
  ck_assert_uint_eq(references(on.context), before);
  done(clRetainContext(on.context));
  ck_assert_uint_eq(references(on.context), before + 1);
  done(clReleaseContext(on.context));
  ground_close(&on);
}
END_TEST

// Uses the stand-in wrongly, leaves a buffer, and ends.
static void end_badly(void) {
  ground on = ground_with("none");
  (void)ground_buffer(&on, 0, SMALL);
  (void)clFlush(NULL);
  exit(0);
}

TEST(a_file_tells_what_was_wrong_and_what_is_left) {
  char path[] = "/tmp/tarn_standin_XXXXXX", text[1024] = "";
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  setenv("TARN_STANDIN_REPORT", path, 1);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) end_badly();
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ck_assert_int_gt(read(file, text, sizeof text - 1), 0);
  close(file);
  unlink(path);
  ck_assert_ptr_nonnull(strstr(text, "clFlush: no queue: NULL (-36)\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of buffer left\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of context left\n"));
}
END_TEST

// --- refusals --------------------------------------------------------------

TEST(handles_that_are_not_good_are_refused) {
  ground on = ground_with("none");
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  unsigned char bytes[SMALL] = {0};
  refuses(clFinish((cl_command_queue)buffer), CL_INVALID_COMMAND_QUEUE,
          "is no queue but a buffer");
  refuses(clFlush((cl_command_queue)bytes), CL_INVALID_COMMAND_QUEUE,
          "was never a queue");
  refuses(clFlush(NULL), CL_INVALID_COMMAND_QUEUE, "NULL");
  done(clReleaseMemObject(buffer));
  refuses(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT, "was released");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                               NULL, NULL),
          CL_INVALID_MEM_OBJECT, "clEnqueueWriteBuffer: buffer");
  ground_close(&on);
}
END_TEST

TEST(copies_that_are_not_good_are_refused) {
  ground on = ground_with("coarse");
  unsigned char in[SMALL] = {0};
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  unsigned char *block = clSVMAlloc(on.context, 0, SMALL, 0);
  refuses(
      clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, 0, in, 0, NULL, NULL),
      CL_INVALID_VALUE, "0 bytes");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 1, SMALL, in, 0,
                               NULL, NULL),
          CL_INVALID_VALUE, "of a buffer of 64 bytes");
  refuses(
      clEnqueueCopyBuffer(on.queue, buffer, buffer, 0, 8, 16, 0, NULL, NULL),
      CL_MEM_COPY_OVERLAP, "overlap");
  refuses(clEnqueueSVMMemcpy(on.queue, CL_FALSE, block + 1, in, SMALL, 0, NULL,
                             NULL),
          CL_INVALID_VALUE, "byte 1 of coarse memory of 64 bytes");
  refuses(clEnqueueSVMMemFill(on.queue, block, in, 3, 9, 0, NULL, NULL),
          CL_INVALID_VALUE, "a pattern of 3 bytes");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, block, 0,
                               NULL, NULL),
          CL_INVALID_VALUE, "coarse memory that is not mapped");
  refuses(clEnqueueSVMUnmap(on.queue, block, 0, NULL, NULL), CL_INVALID_VALUE,
          "nothing is mapped");
  clSVMFree(on.context, block);
  refuses(
      clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL),
      CL_INVALID_VALUE, "that was freed");
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(contexts_are_kept_apart) {
  ground on = ground_with("coarse"), other = ground_with("coarse");
  cl_event event = clCreateUserEvent(other.context, NULL);
  cl_mem buffer = ground_buffer(&other, 0, SMALL);
  void *block = clSVMAlloc(other.context, 0, SMALL, 0);
  unsigned char in[SMALL] = {0};
  refuses(clEnqueueMarkerWithWaitList(on.queue, 1, &event, NULL),
          CL_INVALID_CONTEXT, "of another context");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, in, 0,
                               NULL, NULL),
          CL_INVALID_CONTEXT, "of another context");
  refuses(
      clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL),
      CL_INVALID_CONTEXT, "of another context");
  clSVMFree(other.context, block);
  done(clReleaseMemObject(buffer));
  done(clReleaseEvent(event));
  done(clReleaseCommandQueue(other.queue));
  done(clReleaseContext(other.context));
  ground_close(&on);
}
END_TEST

TEST(memory_that_is_freed_too_early_is_found_when_the_command_runs) {
  ground on = ground_with("coarse");
  unsigned char in[SMALL] = {0};
  void *block = clSVMAlloc(on.context, 0, SMALL, 0);
  tarn_standin_hold(true);
  done(clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL));
  clSVMFree(on.context, block);
  assert_misuses(0);
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  assert_misuses(1);
  ground_close(&on);
}
END_TEST

TEST(the_device_may_not_write_what_the_host_has_mapped) {
  ground on = ground_with("coarse");
  unsigned char bytes[SMALL] = {0};
  unsigned char *block = clSVMAlloc(on.context, 0, SMALL, 0);
  done(clEnqueueSVMMap(on.queue, CL_TRUE, CL_MAP_READ, block, 32, 0, NULL,
                       NULL));
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, bytes, block, 32, 0, NULL, NULL));
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block + 32, bytes, 32, 0, NULL,
                          NULL));
  assert_misuses(0);
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block + 31, bytes, 2, 0, NULL,
                          NULL));
  assert_misuses(1);
  done(clEnqueueSVMUnmap(on.queue, block, 0, NULL, NULL));
  done(clFinish(on.queue));
  clSVMFree(on.context, block);
  assert_misuses(1);
  ground_close(&on);
}
END_TEST
