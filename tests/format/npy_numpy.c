// .npy files against NumPy: what it writes is read, and it reads what is
// written, also with checksums behind the array.
#include <sys/wait.h>
#include <unistd.h>

#include "format/sums.h"
#include "npy_kit.h"

static char folder[64];

static void begin(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-npy-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ck_assert_int_eq(system(command), 0);
}

FIXTURE(begin, end);

// --- NumPy -------------------------------------------------------------------

// Writes files, and tells of each: its name, Tarn's name of the dtype, the
// rank, two lengths, the sum of the array's bytes. The dtype is "-" where Tarn
// refuses the file.
static const char writes[] =
    "import os, sys\n"
    "import numpy as np\n"
    "count = 0\n"
    "def put(a, dtype, version=None):\n"
    "  global count\n"
    "  name = '%d.npy' % count\n"
    "  count += 1\n"
    "  with open(os.path.join(sys.argv[1], name), 'wb') as out:\n"
    "    np.lib.format.write_array(out, a, version=version)\n"
    "  dims = (a.shape + (1, 1))[:2]\n"
    "  print(name, dtype, a.ndim, dims[0], dims[1], sum(a.tobytes()))\n"
    "kinds = {'f64': '<f8', 'f32': '<f4', 'f16': '<f2', 'i64': '<i8',\n"
    "         'i32': '<i4', 'i16': '<i2', 'i8': '<i1', 'u64': '<u8',\n"
    "         'u32': '<u4', 'u16': '<u2', 'u8': '<u1', 'bool': '<b1'}\n"
    "for dtype, kind in kinds.items():\n"
    "  a = np.arange(15).astype(kind)\n"
    "  for version in (None, (1, 0), (2, 0), (3, 0)):\n"
    "    put(a, dtype, version)\n"
    "    put(a.reshape(3, 5), dtype, version)\n"
    "  put(a[:1], dtype)\n"
    "  put(a[:0], dtype)\n"
    "  put(a[:0].reshape(0, 5), dtype)\n"
    "  put(a[:0].reshape(5, 0), dtype)\n"
    "  put(a.reshape(15, 1), dtype)\n"
    "  put(a.reshape(1, 15), dtype)\n"
    "  put(np.asfortranarray(a.reshape(15, 1)), dtype)\n"
    "  put(a.reshape(5, 3)[::2], dtype)\n"
    "  put(a.reshape(5, 3).T, '-')\n"
    "  put(a.reshape(5, 3, 1), '-')\n"
    "  put(a[0], '-')\n"
    "  if a.itemsize > 1:\n"
    "    put(a.astype(a.dtype.newbyteorder('>')), '-')\n"
    "a = np.arange(6, dtype='<u2').view('V2')\n"
    "put(a, 'bf16')\n"
    "put(a.reshape(2, 3), 'bf16')\n"
    "put(np.zeros(3, dtype='c8'), '-')\n"
    "put(np.zeros(3, dtype='U4'), '-')\n"
    "put(np.zeros(3, dtype='S4'), '-')\n"
    "put(np.zeros(3, dtype='M8[s]'), '-')\n"
    "put(np.zeros(3, dtype=[('a', '<f4'), ('b', '<i4')]), '-')\n"
    "put(np.zeros(3, dtype=[('\\u00e9', '<f4')]), '-')\n"
    "put(np.zeros(3, dtype=object), '-')\n"
    "try:\n"
    "  import ml_dtypes\n"
    "  a = np.arange(6).astype(ml_dtypes.bfloat16)\n"
    "  put(a, 'bf16')\n"
    "  put(a.reshape(2, 3), 'bf16')\n"
    "  print('ml_dtypes')\n"
    "except ImportError:\n"
    "  pass\n";

// Reads files, of which each line of the list has the name, dtype and lengths.
static const char reads[] =
    "import os, sys\n"
    "import numpy as np\n"
    "for line in open(os.path.join(sys.argv[1], 'list')):\n"
    "  name, dtype, *shape = line.split()\n"
    "  path = os.path.join(sys.argv[1], name)\n"
    "  shape = tuple(map(int, shape))\n"
    "  for mode in (None, 'r') if 0 not in shape else (None,):\n"
    "    a = np.load(path, mmap_mode=mode)\n"
    "    assert a.dtype == np.dtype(dtype), (name, a.dtype)\n"
    "    assert a.shape == shape, (name, a.shape)\n"
    "    expected = bytes((i * 7 + 3) & 255 for i in range(a.nbytes))\n"
    "    assert a.tobytes() == expected, name\n"
    "    assert mode is None or a.offset == 4096, name\n"
    "  print(name)\n";

// A Python that has NumPy; NULL: there is none.
static const char *find_python(void) {
  static const char *const pythons[] = {"python3", "/usr/bin/python3"};
  for (size_t i = 0; i < 2; i++) {
    char command[96];
    snprintf(command, sizeof command, "%s -c 'import numpy' 2>/dev/null",
             pythons[i]);
    if (system(command) == 0) return pythons[i];
  }
  return NULL;
}

// The output of |script| for the folder; NULL, and skipped, without NumPy.
static FILE *run_python(const char *script, const char *what) {
  char path[96];
  char command[256];
  const char *python = find_python();
  if (python == NULL) {
    note_skipped(what, "no python3 here has NumPy");
    return NULL;
  }
  snprintf(path, sizeof path, "%s/script.py", folder);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fputs(script, file);
  fclose(file);
  snprintf(command, sizeof command, "exec %s '%s' '%s'", python, path, folder);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  return pipe;
}

// --- read --------------------------------------------------------------------

static unsigned char *read_file(const char *name, size_t *out_size) {
  enum { MOST = 1 << 16 };
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  unsigned char *bytes = malloc(MOST);
  require(bytes != NULL);
  *out_size = fread(bytes, 1, MOST, file);
  fclose(file);
  return bytes;
}

// Of a file that NumPy has written, and what it is.
static void check_file(const char *name, const char *dtype, size_t rank,
                       size_t first, size_t second, size_t sum) {
  size_t size = 0;
  unsigned char *bytes = read_file(name, &size);
  tarn_status status = tarn__npy_read(name, bytes, size, size, &npy);
  if (strcmp(dtype, "-") == 0) {
    ck_assert_int_eq(status, TARN_E_INVALID);
    free(bytes);
    return;
  }
  assert_ok(status);
  ck_assert_int_eq(npy.dtype, tarn_dtype_parse(dtype));
  ck_assert_uint_eq(npy.rank, rank);
  ck_assert_uint_eq(npy.dims[0], first);
  ck_assert_uint_eq(npy.dims[1], second);
  ck_assert_uint_eq(npy.offset + npy.size, size);
  for (size_t i = 0; i < npy.size; i++)
    sum -= bytes[npy.offset + i];
  ck_assert_uint_eq(sum, 0);
  free(bytes);
}

TEST(what_numpy_writes_is_read) {
  char line[128];
  size_t count = 0;
  bool has_ml_dtypes = false;
  FILE *pipe = run_python(writes, "files that NumPy writes");
  if (pipe == NULL) return;
  while (fgets(line, sizeof line, pipe) != NULL) {
    char name[32];
    char dtype[32];
    size_t rank = 0;
    size_t first = 0;
    size_t second = 0;
    size_t sum = 0;
    has_ml_dtypes |= strcmp(line, "ml_dtypes\n") == 0;
    if (has_ml_dtypes) break;
    ck_assert_int_eq(sscanf(line, "%31s %31s %zu %zu %zu %zu", name, dtype,
                            &rank, &first, &second, &sum),
                     6);
    check_file(name, dtype, rank, first, second, sum);
    count++;
  }
  ck_assert_int_eq(pclose(pipe), 0);
  ck_assert_uint_ge(count, 12 * 19);
  if (!has_ml_dtypes) {
    note_skipped("bfloat16 that ml_dtypes writes", "python3 has not got it");
  }
}

// --- written -----------------------------------------------------------------

// A file of that array, and of checksums behind it.
static void write_file(FILE *list, const char *descr, tarn_dtype dtype,
                       size_t rank, size_t first, size_t second) {
  static const uint32_t sums[1] = {0};
  static const unsigned char id[TARN__SUMS_ID];
  static int number;
  const size_t dims[] = {first, second};
  size_t size = first * second * tarn_dtype_size(dtype);
  char path[128];
  tarn__format_sums_place place;
  require(tarn__sums_place(TARN__NPY_WRITTEN, size, &place));
  unsigned char *bytes = calloc(1, place.offset + place.size);
  require(bytes != NULL);
  tarn__npy_write(dtype, rank, dims, bytes);
  for (size_t i = 0; i < size; i++)
    bytes[TARN__NPY_WRITTEN + i] = (unsigned char)(i * 7 + 3);
  tarn__sums_write(&place, id, sums, bytes + place.offset);
  snprintf(path, sizeof path, "%s/%d.npy", folder, number);
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(bytes, 1, place.offset + place.size, file),
                    place.offset + place.size);
  fclose(file);
  free(bytes);
  fprintf(list, "%d.npy %s %zu", number++, descr, first);
  if (rank == 2) fprintf(list, " %zu", second);
  fputc('\n', list);
}

static size_t write_files(void) {
  static const char *const descrs[] = {"",    "<f8", "<f4", "<f2", "V2",
                                       "<i8", "<i4", "<i2", "i1",  "<u8",
                                       "<u4", "<u2", "u1",  "b1"};
  char path[96];
  snprintf(path, sizeof path, "%s/list", folder);
  FILE *list = fopen(path, "w");
  ck_assert_ptr_nonnull(list);
  for (int i = 1; i <= TARN_DTYPE_BOOL; i++) {
    write_file(list, descrs[i], (tarn_dtype)i, 1, 9, 1);
    write_file(list, descrs[i], (tarn_dtype)i, 2, 3, 5);
    write_file(list, descrs[i], (tarn_dtype)i, 2, 600, 1);
    write_file(list, descrs[i], (tarn_dtype)i, 2, 0, 4);
  }
  fclose(list);
  return (size_t)4 * TARN_DTYPE_BOOL;
}

TEST(numpy_reads_what_is_written) {
  char line[128];
  size_t read = 0;
  size_t count = write_files();
  FILE *pipe = run_python(reads, "files read by NumPy");
  if (pipe == NULL) return;
  while (fgets(line, sizeof line, pipe) != NULL)
    read++;
  ck_assert_int_eq(pclose(pipe), 0);
  ck_assert_uint_eq(read, count);
}
