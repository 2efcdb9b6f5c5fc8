// .npy files: headers, every type, both memory orders.
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qkv::fuzz::open_and_read({data, size});
  return 0;
}
