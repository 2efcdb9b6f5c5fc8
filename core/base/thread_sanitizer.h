// Whether the program is built with ThreadSanitizer, which knows no fences and leaves few addresses.
#pragma once

namespace qkv {

#if defined(__SANITIZE_THREAD__)  // GCC's way to say so
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace qkv
