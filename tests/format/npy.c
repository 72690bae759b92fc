// Headers of .npy files: what is read and refused, with the byte, and what is
// written. tests/format/npy_numpy.c compares with NumPy.
#include "npy_kit.h"
#include "support/faults.h"

// --- what is read ------------------------------------------------------------

static const struct {
  const char *descr;
  tarn_dtype dtype;
} descrs[] = {
    {"<f8", TARN_DTYPE_F64},  {"<f4", TARN_DTYPE_F32},
    {"<f2", TARN_DTYPE_F16},  {"<V2", TARN_DTYPE_BF16},
    {"|V2", TARN_DTYPE_BF16}, {"<i8", TARN_DTYPE_I64},
    {"<i4", TARN_DTYPE_I32},  {"<i2", TARN_DTYPE_I16},
    {"|i1", TARN_DTYPE_I8},   {"<u8", TARN_DTYPE_U64},
    {"<u4", TARN_DTYPE_U32},  {"<u2", TARN_DTYPE_U16},
    {"|u1", TARN_DTYPE_U8},   {"|b1", TARN_DTYPE_BOOL},
    {"=f4", TARN_DTYPE_F32},  {"f4", TARN_DTYPE_F32},
    {"<u1", TARN_DTYPE_U8},   {">b1", TARN_DTYPE_BOOL},
};

TEST_LOOP(each_dtype_is_read, sizeof descrs / sizeof *descrs) {
  char dict[96];
  size_t element = tarn_dtype_size(descrs[_i].dtype);
  snprintf(dict, sizeof dict,
           "{'descr': '%s', 'fortran_order': False, 'shape': (3, 5), }\n",
           descrs[_i].descr);
  assert_ok(read_dict(1, dict, 15 * element + 7));
  ck_assert_int_eq(npy.dtype, descrs[_i].dtype);
  ck_assert_uint_eq(npy.rank, 2);
  ck_assert_uint_eq(npy.dims[0], 3);
  ck_assert_uint_eq(npy.dims[1], 5);
  ck_assert_uint_eq(npy.offset, 10 + strlen(dict));
  ck_assert_uint_eq(npy.size, 15 * element);
  ck_assert_uint_eq(npy.dtype_at, 20);
}

static const struct {
  const char *dict;
  int version;
  size_t rank;
  size_t first;
  size_t second;
} spellings[] = {
    {"{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 1, 2, 2, 3},
    {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}", 1, 2, 2, 3},
    {"{\"fortran_order\": False, \"descr\": \"<f4\", \"shape\": (2, 3)}", 1, 2,
     2, 3},
    {" \t{\n'descr'\t:\r'<f4' , 'fortran_order' :\f False,\n 'shape' : ( 2 "
     ",\n3 "
     ", ) , }  \n\n",
     1, 2, 2, 3},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", 2, 1, 6, 1},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 3, 1, 6, 1},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}", 1, 2, 2, 3},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (6L,)}", 2, 1, 6, 1},
    // One order of elements is both.
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (6,)}", 1, 1, 6, 1},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (6, 1)}", 1, 2, 6, 1},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 6)}", 1, 2, 1, 6},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (0, 6)}", 1, 2, 0, 6},
    // None.
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", 1, 1, 0, 1},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0)}", 1, 2, 3, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, "
     "18446744073709551615)}",
     1, 2, 0, SIZE_MAX},
};

TEST_LOOP(each_spelling_is_read, sizeof spellings / sizeof *spellings) {
  assert_ok(read_dict(spellings[_i].version, spellings[_i].dict, 24));
  ck_assert_int_eq(npy.dtype, TARN_DTYPE_F32);
  ck_assert_uint_eq(npy.rank, spellings[_i].rank);
  ck_assert_uint_eq(npy.dims[0], spellings[_i].first);
  ck_assert_uint_eq(npy.dims[1], spellings[_i].second);
  ck_assert_uint_eq(npy.size, 4 * spellings[_i].first * spellings[_i].second);
}

TEST(a_header_may_be_as_long_as_it_likes) {
  enum { MOST = TARN__NPY_MOST - 12 };
  static const char dict[] =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  char *text = malloc(MOST + 2);
  unsigned char *head = NULL;
  size_t found = 0;
  require(text != NULL);
  memset(text, ' ', MOST + 1);
  memcpy(text, dict, sizeof dict - 1);
  text[MOST] = '\0';
  assert_ok(read_dict(2, text, 4));
  ck_assert_uint_eq(npy.offset, TARN__NPY_MOST);
  text[65535] = '\0';
  assert_ok(read_dict(1, text, 4));
  ck_assert_uint_eq(npy.offset, 10 + 65535);
  text[65535] = ' ';
  text[MOST] = ' ';
  text[MOST + 1] = '\0';
  size_t size = make_head(3, text, &head);
  assert_fails(tarn__npy_head("a.npy", head, size, size + 4, &found),
               TARN_E_CORRUPT,
               "a.npy: header byte 8: a header of 1048577 bytes; at most "
               "1048576 expected");
  free(head);
  free(text);
}

TEST(nothing_is_allocated) {
  faults_install();
  size_t before = faults_calls();
  assert_ok(read_dict(1, spellings[0].dict, 24));
  assert_status(read_dict(1, "{}", 0), TARN_E_CORRUPT);
  ck_assert_uint_eq(faults_calls(), before);
}

// --- what is refused ---------------------------------------------------------

#define DESCR "'descr': '<f4', "
#define ORDER "'fortran_order': False, "
#define SHAPE "'shape': (2, 3), "

static const struct {
  const char *dict;
  tarn_status status;
  const char *text;  // behind "a.npy: header byte "
} refused[] = {
    // The form.
    {"", TARN_E_CORRUPT, "10: '{' expected"},
    {"[]", TARN_E_CORRUPT, "10: '{' expected"},
    {"{", TARN_E_CORRUPT, "11: a key in quotes or '}' expected"},
    {"{}", TARN_E_CORRUPT, "11: 'descr' expected"},
    {"{descr: 1}", TARN_E_CORRUPT, "11: a key in quotes or '}' expected"},
    {"{'descr' '<f4'}", TARN_E_CORRUPT, "19: ':' behind a key expected"},
    {"{'descr': '<f4' 'shape': ()}", TARN_E_CORRUPT, "26: ',' or '}' expected"},
    {"{'descr", TARN_E_CORRUPT, "17: the end of a text in quotes expected"},
    {"{'des\\x63r': '<f4'}", TARN_E_CORRUPT,
     "15: the end of a text in quotes expected"},
    {"{'descr\n': '<f4'}", TARN_E_CORRUPT,
     "17: the end of a text in quotes expected"},
    {"{'names': 1}", TARN_E_CORRUPT,
     "11: 'names'; 'descr', 'fortran_order' or 'shape' expected"},
    {"{" DESCR "'descr': '<f8'}", TARN_E_CORRUPT, "27: 'descr' occurs twice"},
    {"{" DESCR ORDER "}", TARN_E_CORRUPT, "51: 'shape' expected"},
    {"{" DESCR SHAPE "}", TARN_E_CORRUPT, "44: 'fortran_order' expected"},
    {"{" ORDER SHAPE "}", TARN_E_CORRUPT, "52: 'descr' expected"},
    {"{" DESCR ORDER SHAPE "} x", TARN_E_CORRUPT,
     "70: nothing but blanks expected"},
    {"{" DESCR ORDER SHAPE ", }", TARN_E_CORRUPT,
     "68: a key in quotes or '}' expected"},
    // The order.
    {"{'fortran_order': 0}", TARN_E_CORRUPT, "28: True or False expected"},
    {"{'fortran_order': Tru", TARN_E_CORRUPT, "28: True or False expected"},
    {"{'fortran_order': Falsely}", TARN_E_CORRUPT, "33: ',' or '}' expected"},
    {"{" DESCR "'fortran_order': True, " SHAPE "}", TARN_E_INVALID,
     "44: Fortran order of 2 rows of 3; C order expected"},
    // The shape.
    {"{'shape': [2, 3]}", TARN_E_CORRUPT, "20: '(' of a shape expected"},
    {"{'shape': 3}", TARN_E_CORRUPT, "20: '(' of a shape expected"},
    {"{'shape': (3)}", TARN_E_CORRUPT,
     "22: ',' behind the first length expected"},
    {"{'shape': (,)}", TARN_E_CORRUPT, "21: a length, digits, expected"},
    {"{'shape': (2,,3)}", TARN_E_CORRUPT, "23: a length, digits, expected"},
    {"{'shape': (2, 3 4)}", TARN_E_CORRUPT, "26: ',' or ')' expected"},
    {"{'shape': (-2, 3)}", TARN_E_CORRUPT, "21: a length, digits, expected"},
    {"{'shape': (2, 1.5)}", TARN_E_CORRUPT, "25: ',' or ')' expected"},
    {"{'shape': (2, 03)}", TARN_E_CORRUPT,
     "24: a length without zeros in front expected"},
    {"{'shape': (0x10, 3)}", TARN_E_CORRUPT,
     "22: ',' behind the first length expected"},
    {"{'shape': (2, 18446744073709551616)}", TARN_E_CORRUPT,
     "24: a length below 2^64 expected"},
    {"{'shape': (99999999999999999999999, 1)}", TARN_E_CORRUPT,
     "21: a length below 2^64 expected"},
    {"{'shape': (2, 3", TARN_E_CORRUPT, "25: ',' or ')' expected"},
    {"{'shape': ()}", TARN_E_INVALID, "20: 0 dimensions; one or two expected"},
    {"{'shape': (2, 3, 4)}", TARN_E_INVALID,
     "20: 3 dimensions; one or two expected"},
    {"{" DESCR ORDER "'shape': (4294967296, 4294967296)}", TARN_E_CORRUPT,
     "60: the lengths 4294967296 and 4294967296 overflow"},
    {"{" DESCR ORDER "'shape': (4611686018427387904,)}", TARN_E_CORRUPT,
     "60: the lengths 4611686018427387904 and 1 overflow"},
    {"{" DESCR ORDER "'shape': (4611686018427387903,)}", TARN_E_CORRUPT,
     "60: the lengths 4611686018427387903 and 1 overflow"},
    {"{" DESCR ORDER "'shape': (2, 4)}", TARN_E_CORRUPT,
     "60: the array is bytes 67 to 99, but the file ends at 91"},
// The dtype.
#define EXPECTED "f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1, b1 or V2 expected"
    {"{'descr': 4}", TARN_E_CORRUPT, "20: a dtype in quotes expected"},
    {"{'descr': None}", TARN_E_CORRUPT, "20: a dtype in quotes expected"},
    {"{'descr': ''}", TARN_E_INVALID, "20: dtype ''; " EXPECTED},
    {"{'descr': '<'}", TARN_E_INVALID, "20: dtype '<'; " EXPECTED},
    {"{'descr': '<f'}", TARN_E_INVALID, "20: dtype '<f'; " EXPECTED},
    {"{'descr': '<f16'}", TARN_E_INVALID, "20: dtype '<f16'; " EXPECTED},
    {"{'descr': '<c8'}", TARN_E_INVALID, "20: dtype '<c8'; " EXPECTED},
    {"{'descr': '<<f4'}", TARN_E_INVALID, "20: dtype '<<f4'; " EXPECTED},
    {"{'descr': '<M8[ns]'}", TARN_E_INVALID, "20: dtype '<M8[ns]'; " EXPECTED},
    {"{'descr': '|V4'}", TARN_E_INVALID, "20: dtype '|V4'; " EXPECTED},
    {"{'descr': '|S9'}", TARN_E_INVALID, "20: dtype '|S9'; " EXPECTED},
    {"{'descr': '|O'}", TARN_E_INVALID,
     "20: dtype '|O', objects of Python; " EXPECTED},
    {"{'descr': '>f4'}", TARN_E_INVALID,
     "20: dtype '>f4', big-endian; " EXPECTED},
    {"{'descr': '>i2'}", TARN_E_INVALID,
     "20: dtype '>i2', big-endian; " EXPECTED},
    {"{'descr': [('a', '<f4'), ('b', '<i4')]}", TARN_E_INVALID,
     "20: a dtype with fields; " EXPECTED},
    {"{'descr': ('<f4', (2,))}", TARN_E_INVALID,
     "20: a dtype with fields; " EXPECTED},
};

TEST_LOOP(what_is_refused_is_named_with_its_byte,
          sizeof refused / sizeof *refused) {
  char text[256];
  snprintf(text, sizeof text, "a.npy: header byte %s", refused[_i].text);
  assert_status(read_dict(1, refused[_i].dict, 24), refused[_i].status);
  ck_assert_str_eq(tarn_last_error(), text);
}

TEST(longs_of_python_2_end_with_version_2) {
  assert_fails(read_dict(3, "{" DESCR ORDER "'shape': (6L,)}", 24),
               TARN_E_CORRUPT,
               "header byte 64: ',' behind the first length expected");
}

TEST(a_dict_may_not_have_a_byte_0) {
  unsigned char *head = NULL;
  size_t size = make_head(1, "{" DESCR ORDER SHAPE "}  ", &head);
  head[size - 1] = '\0';
  assert_fails(tarn__npy_read("a.npy", head, size, size + 24, &npy),
               TARN_E_CORRUPT, "header byte 70: nothing but blanks expected");
  memset(head + 12, 0, 3);
  assert_fails(tarn__npy_read("a.npy", head, size, size + 24, &npy),
               TARN_E_CORRUPT, "header byte 12: the end of a text");
  free(head);
}

// --- what is cut -------------------------------------------------------------

// At each byte, where the file ends there, and where only so much was read.
TEST_LOOP(a_file_that_is_cut_is_refused, 3) {
  unsigned char *head = NULL;
  size_t size = make_head(_i + 1, "{" DESCR ORDER SHAPE "}\n", &head);
  size_t least = _i == 0 ? 10 : 12;
  for (size_t cut = 0; cut < size; cut++) {
    char text[96];
    size_t found = 1;
    unsigned char *bytes = malloc(cut > 0 ? cut : 1);
    require(bytes != NULL);
    memcpy(bytes, head, cut);
    snprintf(text, sizeof text,
             "a.npy: header byte %zu: the file ends; a header of %zu bytes "
             "expected",
             cut,
             cut < 7       ? 10
             : cut < least ? least
                           : size);
    assert_status(tarn__npy_head("a.npy", bytes, cut, cut, &found),
                  TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0 && found == 0);
    assert_status(tarn__npy_read("a.npy", bytes, cut, cut, &npy),
                  TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0);
    assert_status(tarn__npy_read("a.npy", bytes, cut, size + 24, &npy),
                  TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0);
    free(bytes);
  }
  assert_status(tarn__npy_read("a.npy", head, size, size + 23, &npy),
                TARN_E_CORRUPT);
  assert_error_says("but the file ends at");
  assert_ok(tarn__npy_read("a.npy", head, size, size + 24, &npy));
  free(head);
}

TEST(what_is_no_npy_file_is_refused) {
  unsigned char *head = NULL;
  size_t found = 0;
  size_t size = make_head(1, "{" DESCR ORDER SHAPE "}\n", &head);
  for (size_t i = 0; i < 6; i++) {
    char text[96];
    head[i] ^= 0x20;
    snprintf(text, sizeof text,
             "a.npy: header byte %zu: 0x%02x, where an .npy file has 0x%02x", i,
             head[i], head[i] ^ 0x20);
    assert_fails(tarn__npy_head("a.npy", head, size, size, &found),
                 TARN_E_CORRUPT, text);
    head[i] ^= 0x20;
  }
  static const unsigned char versions[][2] = {{0, 0}, {1, 1}, {4, 0}, {255, 9}};
  for (size_t i = 0; i < 4; i++) {
    char text[96];
    memcpy(head + 6, versions[i], 2);
    snprintf(text, sizeof text,
             "a.npy: header byte 6: version %d.%d of the format; 1.0, 2.0 or "
             "3.0 expected",
             versions[i][0], versions[i][1]);
    assert_fails(tarn__npy_head("a.npy", head, size, size, &found),
                 TARN_E_CORRUPT, text);
  }
  free(head);
}

// --- what is written ---------------------------------------------------------

static void assert_written(tarn_dtype dtype, size_t rank, size_t first,
                           size_t second, const char *dict) {
  unsigned char *head = malloc(TARN__NPY_WRITTEN);
  const size_t dims[] = {first, second};
  size_t length = strlen(dict);
  require(head != NULL);
  tarn__npy_write(dtype, rank, dims, head);
  ck_assert_mem_eq(head, "\x93NUMPY\x01\x00\xf6\x0f", 10);
  ck_assert_msg(memcmp(head + 10, dict, length) == 0, "'%.*s' is not '%s'",
                (int)length, head + 10, dict);
  for (size_t i = 10 + length; i < TARN__NPY_WRITTEN - 1; i++)
    require(head[i] == ' ');
  require(head[TARN__NPY_WRITTEN - 1] == '\n');
  free(head);
}

TEST(a_header_has_4096_bytes) {
  assert_written(TARN_DTYPE_F32, 2, 1000, 64,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, "
                 "64), }");
  assert_written(TARN_DTYPE_BOOL, 1, 7, 1,
                 "{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }");
  assert_written(TARN_DTYPE_BF16, 2, 0, 8,
                 "{'descr': '<V2', 'fortran_order': False, 'shape': (0, 8), }");
  assert_written(TARN_DTYPE_U64, 2, SIZE_MAX, SIZE_MAX,
                 "{'descr': '<u8', 'fortran_order': False, 'shape': "
                 "(18446744073709551615, 18446744073709551615), }");
}

TEST_RANGE(what_is_written_is_read, 1, TARN_DTYPE_BOOL + 1) {
  unsigned char head[TARN__NPY_WRITTEN];
  static const size_t dims[][2] = {{7, 1}, {7, 3}, {0, 5}, {5, 0}, {1, 999}};
  for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
    for (size_t rank = 1; rank <= 2; rank++) {
      size_t width = rank == 1 ? 1 : dims[i][1];
      size_t size = dims[i][0] * width * tarn_dtype_size((tarn_dtype)_i);
      tarn__npy_write((tarn_dtype)_i, rank, dims[i], head);
      assert_ok(
          tarn__npy_read("a.npy", head, sizeof head, sizeof head + size, &npy));
      require(npy.dtype == (tarn_dtype)_i && npy.rank == rank);
      require(npy.dims[0] == dims[i][0] && npy.dims[1] == width);
      require(npy.offset == sizeof head && npy.size == size);
    }
  }
}
