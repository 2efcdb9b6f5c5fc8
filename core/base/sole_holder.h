// Whether a shared object has one holder left, who may then write it in place.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/thread_sanitizer.h"

namespace qkv {

// True where nobody else holds the object. What others did with it before they let go comes before what is done next:
// use_count() alone does not promise that. Not while another thread copies this pointer.
template <class T>
bool is_sole_holder(const std::shared_ptr<T>& pointer) {
  if (pointer.use_count() != 1) return false;
  if constexpr (kThreadSanitizer) {
    const std::shared_ptr<T> counted = pointer;  // in place of a fence: libstdc++ orders each change of the count
  } else {
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  return true;
}

}  // namespace qkv
