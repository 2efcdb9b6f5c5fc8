#include "app/engine/compare.h"

#include <fstream>
#include <utility>

#include "core/attention/altered_inputs.h"
#include "core/session/session_file.h"

namespace qkv {
namespace {

bool is_session(const std::filesystem::path& path) {
  std::string head(512, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return looks_like_session(as_bytes(head));
}

Result<Comparison> compare(const CompareRequest& request, std::vector<TensorInfo>& arrays, const StopFlag* stop) {
  if (is_session(request.other)) {
    const Result<Session> other = read_session(request.other);
    if (!other.ok()) return other.error();
    return compare_sessions(request.session, other.value(), kFloat32Tolerance, stop);
  }
  const Result<TensorFile> file = TensorFile::open(request.other);
  if (!file.ok()) return file.error();
  // Weights alone are compared with nothing, whatever array is chosen.
  if (!is_weights_only(request.session.problem.source)) {
    arrays.assign(file.value().tensors().begin(), file.value().tensors().end());
  }
  return compare_arrays(request.session, file.value(), request.names, kFloat32Tolerance, stop);
}

}  // namespace

Result<std::shared_ptr<const CompareResult>> compare_with_file(const CompareRequest& request, const StopFlag* stop) {
  auto result = std::make_shared<CompareResult>();
  result->session = request.session;
  result->other = request.other;
  result->version = request.version;
  Result<Comparison> comparison = compare(request, result->arrays, stop);
  if (!comparison.ok()) {
    Error error = comparison.error();
    error.message = request.other.filename().string() + ": " + error.message;
    if (error.code == ErrorCode::kCancelled || result->arrays.empty()) return error;
    result->failure = error.message;
    return std::shared_ptr<const CompareResult>(std::move(result));
  }
  result->comparison = std::move(comparison).value();
  InputCache cache(result->session.problem, check_session(result->session).value());
  for (std::size_t array = 0; array < result->comparison.arrays.size(); ++array) {
    result->ours.push_back(our_shown(cache, result->comparison, array, stop));
    result->theirs.push_back(their_shown(result->comparison, array));
    if (is_stopped(stop)) return Error{ErrorCode::kCancelled, "the comparison was stopped"};
  }
  return std::shared_ptr<const CompareResult>(std::move(result));
}

}  // namespace qkv
