// What two sessions are set to differently, in words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"

namespace qkv {

// "Q, K, V projected from X".
std::string_view source_words(const Source& source);

// "4 heads, 9 × 9, d_k 8, d_v 8".
std::string shapes_words(const Shapes& shapes);

// A line for each: tokens, kind of source, shapes, options; "window: 4 here, none there". Numbers of matrices are not
// among them.
std::vector<std::string> session_differences(const Session& here, const Shapes& here_shapes, const Session& there,
                                             const Shapes& there_shapes);

}  // namespace qkv
