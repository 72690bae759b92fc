// tarn.hpp - Tarn for C++17: handles that end what they hold, errors as
// exceptions, memory of pools for containers. Header only, over the headers of
// C, whose functions take the handles as they are.
//
//   auto gpu = tarn::make<tarn::device>(tarn_device_open, "cuda:0");
//   auto stream = tarn::make<tarn::stream>(tarn_stream_create, gpu.get());
//   tarn_pool *pool = tarn::pool_of(tarn_place_on(gpu));
//   tarn::block rows(pool, 1 << 20, stream);
//   ... kernels on |stream| use rows.address() ...
//
//   auto buffer = tarn::make<tarn::buffer>(tarn_synced_create, 4096, nullptr);
//   {
//     tarn::access<float> a(buffer, TARN_HOST);           // reads and writes
//     std::fill(a.begin(), a.end(), 1.0f);
//   }
//   tarn::access<const float> b(buffer, tarn_place_on(gpu), stream);
//
//   tarn::pool_resource memory(tarn::pool_of(TARN_HOST));
//   std::pmr::vector<int> numbers(&memory);
//   std::vector<int, tarn::allocator<int>> more(tarn::pool_of(TARN_HOST));
//
// Everything else is C: tarn::check(tarn_whole_gather(&table, &rows, stream)),
// and tarn::make<tarn::cache>(tarn_cache_create, &table, &options).
//
// Errors. A failure throws tarn::error, with the status and the library's text;
// where memory is short (TARN_FULL, TARN_E_NOMEM) it throws tarn::no_memory, a
// std::bad_alloc. Nothing is thrown through a function of C.
//
// With TARN_NO_EXCEPTIONS defined before the include, or where the compiler has
// none, these functions return a tarn::result instead:
//
//   tarn::result<tarn::device> gpu =
//       tarn::make<tarn::device>(tarn_device_open, "cuda:0");
//   if (!gpu.ok()) return gpu.status();     // tarn_last_error() has the text
//
// Then constructors that can fail do not exist: tarn::block::make and
// tarn::access::status stand for them. A program must not use both ways in one
// file.
//
// A destructor cannot tell of a failure: close() can, of every handle. Threads,
// order and fork are as for the objects of C. Destroying what is collective,
// such as whole memory, is collective here too: at scope ends that all ranks
// reach in the same order, and not where one rank may leave by an exception;
// release() and the functions of C are there for the others.
//
// Cost: none besides the functions of C. A handle is a pointer; a block is a
// tarn_block and a stream.
#ifndef TARN_HPP_
#define TARN_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tarn/tarn.h"

#if !defined(TARN_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define TARN_NO_EXCEPTIONS
#endif
#if !defined(TARN_NO_EXCEPTIONS)
#include <stdexcept>
#endif

// What cannot be, for the optimizer.
#if defined(__GNUC__)
#define TARN_NEVER() __builtin_unreachable()
#else
#define TARN_NEVER() ((void)0)
#endif

namespace tarn {

// ---------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------

#if defined(TARN_NO_EXCEPTIONS)
inline namespace results {
#else
inline namespace exceptions {
#endif

#if defined(TARN_NO_EXCEPTIONS)

// A value, or the status that says why there is none; its text is
// tarn_last_error() until the thread's next failure.
template <class T>
class [[nodiscard]] result {
 public:
  result(tarn_status status,
         T value) noexcept(std::is_nothrow_move_constructible_v<T>)
      : status_(status), value_(std::move(value)) {}
  bool ok() const noexcept {
    return status_ == TARN_OK;
  }
  tarn_status status() const noexcept {
    return status_;
  }
  // What there is when it is ok(); else empty.
  T &value() &noexcept {
    return value_;
  }
  const T &value() const &noexcept {
    return value_;
  }
  T value() && {
    return std::move(value_);
  }

 private:
  tarn_status status_;
  T value_;
};

template <class T>
using returns = result<T>;
using checked = tarn_status;

template <class T>
returns<T> give(tarn_status status, T value) {
  return result<T>(status, std::move(value));
}

[[nodiscard]] inline tarn_status check(tarn_status status) noexcept {
  return status;
}

#else

class error : public std::runtime_error {
 public:
  explicit error(tarn_status status)
      : std::runtime_error(std::string(tarn_status_name(status)) + ": " +
                           tarn_last_error()),
        status_(status) {}
  tarn_status status() const noexcept {
    return status_;
  }

 private:
  tarn_status status_;
};

class no_memory : public std::bad_alloc {
 public:
  explicit no_memory(tarn_status status) : why_(status) {}
  tarn_status status() const noexcept {
    return why_.status();
  }
  const char *what() const noexcept override {
    return why_.what();
  }

 private:
  error why_;
};

[[noreturn]] inline void raise(tarn_status status) {
  if (status == TARN_FULL || status == TARN_E_NOMEM) throw no_memory(status);
  throw error(status);
}

template <class T>
using returns = T;
using checked = void;

// Throws what |status| says, unless it is TARN_OK (or TARN_PENDING).
inline void check(tarn_status status) {
  if (status != TARN_OK && status != TARN_PENDING) raise(status);
}

template <class T>
T give(tarn_status status, T value) {
  check(status);
  return value;
}

#endif

// ---------------------------------------------------------------------------
// Handles
// ---------------------------------------------------------------------------

// Owns a |T|, which |End| ends. Moves; does not copy.
template <class T, tarn_status (*End)(T *)>
class handle {
 public:
  using element_type = T;
  handle() noexcept = default;
  explicit handle(T *object) noexcept : object_(object) {}
  handle(handle &&other) noexcept : object_(other.release()) {}
  handle &operator=(handle &&other) noexcept {
    if (this != &other) {
      end();
      object_ = other.release();
    }
    return *this;
  }
  handle(const handle &) = delete;
  handle &operator=(const handle &) = delete;
  ~handle() {
    end();
  }

  T *get() const noexcept {
    return object_;
  }
  operator T *() const noexcept {
    return object_;
  }  // for functions of C

  // Gives it up without ending it.
  [[nodiscard]] T *release() noexcept {
    return std::exchange(object_, nullptr);
  }

  // Ends it now. Where the function of C says that nothing has changed
  // (TARN_E_STATE, TARN_E_INVALID), the handle keeps it.
  checked close() {
    tarn_status status = object_ != nullptr ? End(object_) : TARN_OK;
    if (status != TARN_E_STATE && status != TARN_E_INVALID) object_ = nullptr;
    return check(status);
  }

 private:
  void end() noexcept {
    if (object_ != nullptr) (void)End(object_);
    object_ = nullptr;
  }
  T *object_ = nullptr;
};

using device = handle<tarn_device, tarn_device_close>;
using stream = handle<tarn_stream, tarn_stream_destroy>;
using event = handle<tarn_event, tarn_event_destroy>;
using pool = handle<tarn_pool, tarn_pool_destroy>;  // of tarn_pool_create
using buffer = handle<tarn_synced, tarn_synced_destroy>;
using model = handle<tarn_model, tarn_model_destroy>;
using comm = handle<tarn_comm, tarn_comm_destroy>;
using whole = handle<tarn_whole, tarn_whole_destroy>;
using embedding = handle<tarn_embedding, tarn_embedding_destroy>;
using cache = handle<tarn_cache, tarn_cache_destroy>;
using disk = handle<tarn_disk, tarn_disk_close>;

namespace detail {

// Arguments become what the function takes: a literal is no size_t.
template <class H, class... Parameters, std::size_t... I, class... Arguments>
returns<H> make(tarn_status (*create)(Parameters...), std::index_sequence<I...>,
                Arguments &&...arguments) {
  typename H::element_type *object = nullptr;
  tarn_status status =
      create(static_cast<std::tuple_element_t<I, std::tuple<Parameters...>>>(
                 arguments)...,
             &object);
  return give(status, H(object));
}

}  // namespace detail

// Calls |create|, whose last argument is where the object goes.
template <class H, class... Parameters, class... Arguments>
returns<H> make(tarn_status (*create)(Parameters...),
                Arguments &&...arguments) {
  return detail::make<H>(create, std::index_sequence_for<Arguments...>(),
                         std::forward<Arguments>(arguments)...);
}

// The shared pool of |place|, which belongs to the library.
inline returns<tarn_pool *> pool_of(tarn_place place) {
  tarn_pool *found = nullptr;
  tarn_status status = tarn_pool_of(place, &found);
  return give(status, found);
}

// ---------------------------------------------------------------------------
// Elements in a row
// ---------------------------------------------------------------------------

// As std::span of C++20.
template <class T>
class span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  constexpr span() noexcept = default;
  constexpr span(T *data, std::size_t size) noexcept
      : data_(data), size_(size) {}
  constexpr T *data() const noexcept {
    return data_;
  }
  constexpr std::size_t size() const noexcept {
    return size_;
  }
  constexpr bool empty() const noexcept {
    return size_ == 0;
  }
  constexpr T *begin() const noexcept {
    return data_;
  }
  constexpr T *end() const noexcept {
    return data_ + size_;
  }
  constexpr T &operator[](std::size_t i) const noexcept {
    return data_[i];
  }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

// A block of a pool. It is freed on the stream that it was allocated on, or on
// that of the last free_on; the stream lives longer.
class block {
 public:
  block() noexcept : block_(), stream_(nullptr) {}
#if !defined(TARN_NO_EXCEPTIONS)
  block(tarn_pool *from, std::size_t size, tarn_stream *on = nullptr,
        std::size_t align = 0) {
    check(tarn_pool_alloc(from, size, align, on, &block_));
    if (block_.pool == nullptr) TARN_NEVER();
    stream_ = on;
  }
#endif
  static returns<block> make(tarn_pool *from, std::size_t size,
                             tarn_stream *on = nullptr, std::size_t align = 0) {
    block made;
    made.stream_ = on;
    tarn_status status = tarn_pool_alloc(from, size, align, on, &made.block_);
    return give(status, std::move(made));
  }
  block(block &&other) noexcept
      : block_(std::exchange(other.block_, tarn_block())),
        stream_(other.stream_) {}
  block &operator=(block &&other) noexcept {
    if (this != &other) {
      end();
      block_ = std::exchange(other.block_, tarn_block());
      stream_ = other.stream_;
    }
    return *this;
  }
  block(const block &) = delete;
  block &operator=(const block &) = delete;
  ~block() {
    end();
  }

  explicit operator bool() const noexcept {
    return block_.pool != nullptr;
  }
  const tarn_block &get() const noexcept {
    return block_;
  }
  tarn_addr address() const noexcept {
    return block_.address;
  }
  std::size_t size() const noexcept {
    return block_.size;
  }  // bytes

  // As elements, where the host can touch them (pool.h).
  template <class T>
  span<T> as() const noexcept {
    return span<T>(static_cast<T *>(block_.pointer), block_.size / sizeof(T));
  }

  // Its last use is queued on |on|.
  void free_on(tarn_stream *on) noexcept {
    stream_ = on;
  }

  [[nodiscard]] tarn_block release() noexcept {
    return std::exchange(block_, tarn_block());
  }

  // Frees it now.
  checked close() {
    tarn_block gone = release();
    return check(gone.pool != nullptr ? tarn_pool_free(&gone, stream_)
                                      : TARN_OK);
  }

 private:
  void end() noexcept {
    if (block_.pool != nullptr) (void)tarn_pool_free(&block_, stream_);
    block_ = tarn_block();
  }
  tarn_block block_;
  tarn_stream *stream_;
};

// ---------------------------------------------------------------------------
// Accesses of synced buffers
// ---------------------------------------------------------------------------

// All bytes are overwritten: nothing is copied.
struct discard_t {
  explicit discard_t() = default;
};
inline constexpr discard_t discard{};

// An access from its construction to its end, of elements |T|: it reads where T
// is const, else reads and writes, or, with tarn::discard, writes. It stays
// where it is, and |count| is of elements; the range is the whole buffer unless
// it is given.
template <class T>
class access {
 public:
  static constexpr std::size_t all = SIZE_MAX;

  access(tarn_synced *of, tarn_place at, tarn_stream *on = nullptr,
         std::size_t first = 0, std::size_t count = all)
      : access(of, at, on, first, count,
               std::is_const_v<T> ? TARN_READ : TARN_READ_WRITE) {}
  access(discard_t, tarn_synced *of, tarn_place at, tarn_stream *on = nullptr,
         std::size_t first = 0, std::size_t count = all)
      : access(of, at, on, first, count, TARN_WRITE_DISCARD) {
    static_assert(!std::is_const_v<T>, "discard is for writing");
  }
  access(const access &) = delete;
  access &operator=(const access &) = delete;
  // What was written is the newest value, also after an exception: cancel()
  // where it should not be.
  ~access() {
    if (access_.buffer != nullptr && tarn_synced_end(&access_) != TARN_OK) {
      (void)tarn_synced_cancel(&access_, nullptr);
    }
  }

  // Whether it has begun; without exceptions, to be asked first.
  tarn_status status() const noexcept {
    return status_;
  }

  tarn_addr address() const noexcept {
    return access_.address;
  }
  std::size_t size() const noexcept {
    return access_.size / sizeof(T);
  }

  // For the host; null at a place that it cannot touch.
  T *data() const noexcept {
    return static_cast<T *>(access_.pointer);
  }
  T *begin() const noexcept {
    return data();
  }
  T *end() const noexcept {
    return data() + size();
  }
  T &operator[](std::size_t i) const noexcept {
    return data()[i];
  }
  operator span<T>() const noexcept {
    return span<T>(data(), size());
  }

  // Ends it now; after a failure it is open still.
  checked close() {
    tarn_status status = tarn_synced_end(&access_);
    if (status == TARN_OK) access_ = tarn_access();
    return check(status);
  }
  // Ends it without what was written.
  checked cancel() {
    tarn_status status = tarn_synced_cancel(&access_, nullptr);
    access_ = tarn_access();
    return check(status);
  }

 private:
  access(tarn_synced *of, tarn_place at, tarn_stream *on, std::size_t first,
         std::size_t count, std::uint32_t mode) {
    std::size_t bytes = tarn_synced_size(of);
    std::size_t offset = first * sizeof(T);
    std::size_t size = count != all      ? count * sizeof(T)
                       : offset <= bytes ? bytes - offset
                                         : 0;
    status_ = tarn_synced_begin(of, offset, size, at, mode, on, &access_);
#if !defined(TARN_NO_EXCEPTIONS)
    check(status_);
#endif
  }
  tarn_access access_ = {};
  tarn_status status_ = TARN_OK;
};

// ---------------------------------------------------------------------------
// Memory for containers
// ---------------------------------------------------------------------------
// Of pools whose memory the host can touch: TARN_HOST, pinned and unified
// memory, and devices of which tarn_device_host_accessible says so. A block is
// found again by its address. Without exceptions a shortage ends the program,
// as operator new does there.

namespace detail {

inline void *allocate(tarn_pool *from, std::size_t size, std::size_t align) {
  tarn_block made;
  tarn_status status =
      tarn_pool_alloc(from, size > 0 ? size : 1, align, nullptr, &made);
#if defined(TARN_NO_EXCEPTIONS)
  if (status != TARN_OK) std::abort();
#else
  check(status);
#endif
  return made.pointer;
}

inline void deallocate(tarn_pool *to, void *pointer) noexcept {
  (void)tarn_pool_free_address(to, reinterpret_cast<std::uintptr_t>(pointer),
                               nullptr);
}

}  // namespace detail

// Memory of |pool| for containers of std::pmr; the pool lives longer.
class pool_resource final : public std::pmr::memory_resource {
 public:
  explicit pool_resource(tarn_pool *from) noexcept : pool_(from) {}
  tarn_pool *get() const noexcept {
    return pool_;
  }

 private:
  void *do_allocate(std::size_t size, std::size_t align) override {
    return detail::allocate(pool_, size, align);
  }
  void do_deallocate(void *pointer, std::size_t, std::size_t) override {
    detail::deallocate(pool_, pointer);
  }
  bool do_is_equal(
      const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti)
    auto *same = dynamic_cast<const pool_resource *>(&other);
    return same != nullptr && same->pool_ == pool_;
#else
    return this == &other;
#endif
  }
  tarn_pool *pool_;
};

// The same for other containers of the standard library.
template <class T>
class allocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  allocator(tarn_pool *from) noexcept : pool_(from) {}  // as a container's
  template <class U>
  allocator(const allocator<U> &other) noexcept : pool_(other.get()) {}
  tarn_pool *get() const noexcept {
    return pool_;
  }

  [[nodiscard]] T *allocate(std::size_t count) {
    constexpr std::size_t most = SIZE_MAX / 2;  // a pool has never so much
    std::size_t size = count <= most / sizeof(T) ? count * sizeof(T) : most;
    return static_cast<T *>(detail::allocate(pool_, size, alignof(T)));
  }
  void deallocate(T *pointer, std::size_t) noexcept {
    detail::deallocate(pool_, pointer);
  }

 private:
  tarn_pool *pool_;
};

template <class T, class U>
bool operator==(const allocator<T> &a, const allocator<U> &b) noexcept {
  return a.get() == b.get();
}
template <class T, class U>
bool operator!=(const allocator<T> &a, const allocator<U> &b) noexcept {
  return !(a == b);
}

}  // namespace results or exceptions
}  // namespace tarn

#endif  // TARN_HPP_
