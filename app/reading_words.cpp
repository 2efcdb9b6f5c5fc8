#include "app/reading_words.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

std::string mebibytes(std::uint64_t bytes, int decimals) {
  return format_fixed(static_cast<double>(bytes) / 1048576, decimals);
}

}  // namespace

std::string mebibytes(std::uint64_t bytes) { return mebibytes(bytes, 0) + " MiB"; }

double share_read(const ReadProgress& progress) {
  const std::uint64_t total = progress.total();
  return total == 0 ? 0 : std::min(1.0, static_cast<double>(progress.done()) / static_cast<double>(total));
}

std::string reading_words(const ReadProgress& progress) {
  const std::uint64_t total = progress.total(), done = std::min(progress.done(), total);
  if (total == 0) return "Looking at what the file holds";
  if (done == total) return "All is read; a moment more";
  const int decimals = total < (std::uint64_t{10} << 20) ? 1 : 0;
  return "Read " + mebibytes(done, decimals) + " of " + mebibytes(total, decimals) + " MiB";
}

std::string percent_words(const ReadProgress& progress) {
  if (progress.total() == 0) return "";
  return format_fixed(std::floor(100 * share_read(progress)), 0) + " %";
}

}  // namespace qkv
