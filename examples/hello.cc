// hello.c in C++: a block of a device, and a buffer that follows its user.
#include <cstdio>
#include <cstring>
#include <tarn.hpp>

int main(int argc, char **argv) try {
  const char *name = argc > 1 ? argv[1] : "cpu:0";
  auto device = tarn::make<tarn::device>(tarn_device_open, name);
  auto buffer = tarn::make<tarn::buffer>(tarn_synced_create, 64, nullptr);
  {
    tarn::access<char> text(tarn::discard, buffer, TARN_HOST);
    std::snprintf(text.data(), text.size(), "hello from %s", name);
  }
  tarn::block block(tarn::pool_of(tarn_place_on(device)), 64);
  {
    tarn::access<const char> there(buffer, tarn_place_on(device));
    tarn::check(
        tarn_copy_d2d(device, block.address(), there.address(), 64, nullptr));
  }
  char back[64];
  tarn::check(
      tarn_copy_d2h(device, back, block.address(), sizeof back, nullptr));
  std::printf("%s: %zu bytes are back\n", back, std::strlen(back) + 1);
  return 0;
} catch (const std::exception &failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
