// What work throws, as an error: for the threads and borders that an exception must not leave.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace qkv {

// The work's Result; kBadInput with `too_large` where it asks for memory that there is not, or for more than any
// memory has.
template <class Work>
auto without_throwing(std::string_view too_large, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return bad_input(std::string(too_large));
  } catch (const std::length_error&) {
    return bad_input(std::string(too_large));
  } catch (const std::exception& thrown) {
    return bad_input(std::string("something unexpected happened: ") + thrown.what());
  }
}

}  // namespace qkv
