#include "app/engine/compare.h"

#include <fstream>
#include <utility>

#include "app/engine/newest_worker.h"
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

Result<Comparison> compare(const CompareRequest& request, const StopFlag* stop) {
  if (is_session(request.other)) {
    const Result<Session> other = read_session(request.other);
    if (!other.ok()) return other.error();
    return compare_sessions(request.session, other.value(), kFloat32Tolerance, stop);
  }
  const Result<TensorFile> file = TensorFile::open(request.other);
  if (!file.ok()) return file.error();
  return compare_arrays(request.session, file.value(), {}, kFloat32Tolerance, stop);
}

std::vector<Matrix> shown(const std::vector<MatrixD>& heads) {
  std::vector<Matrix> matrices;
  for (const MatrixD& head : heads) matrices.push_back(head.cast<float>());
  return matrices;
}

MatrixD mean_of(const std::vector<MatrixD>& heads) {
  MatrixD sum = heads[0];
  for (std::size_t head = 1; head < heads.size(); ++head) sum += heads[head];
  return sum / static_cast<double>(heads.size());
}

}  // namespace

Result<std::shared_ptr<CompareResult>> compare_with_file(const CompareRequest& request, const StopFlag* stop) {
  Result<Comparison> comparison = compare(request, stop);
  if (!comparison.ok()) {
    Error error = comparison.error();
    error.message = request.other.filename().string() + ": " + error.message;
    return error;
  }
  auto result = std::make_shared<CompareResult>();
  result->session = request.session;
  result->other = request.other;
  result->comparison = std::move(comparison).value();
  InputCache cache(result->session.problem, check_session(result->session).value());
  for (const OtherMatrix& theirs : result->comparison.theirs) {
    if (is_stopped(stop)) return Error{ErrorCode::kCancelled, "the comparison was stopped"};
    const OtherMatrix ours = our_matrix(cache, theirs.kind);
    result->ours.push_back(shown(theirs.mean_of_heads ? std::vector<MatrixD>{mean_of(ours.heads)} : ours.heads));
    result->theirs.push_back(shown(theirs.heads));
  }
  return result;
}

struct CompareEngine::Impl {
  NewestWorker<CompareRequest, std::shared_ptr<CompareResult>> worker;
  std::uint64_t versions = 0;
};

CompareEngine::CompareEngine(std::function<void()> wake)
    : impl_(new Impl{{[](const CompareRequest& request, const StopFlag* stop, const auto&) {
                        return compare_with_file(request, stop);
                      },
                      std::move(wake)}}) {}
CompareEngine::~CompareEngine() = default;

void CompareEngine::request(const CompareRequest& request) { impl_->worker.request(request, false); }

std::shared_ptr<const CompareResult> CompareEngine::take_result() {
  std::shared_ptr<CompareResult> result = impl_->worker.take_result().value_or(nullptr);
  if (result) result->version = ++impl_->versions;
  return result;
}
std::optional<Error> CompareEngine::take_error() { return impl_->worker.take_error(); }
bool CompareEngine::busy() const { return impl_->worker.busy(); }
void CompareEngine::wait() { impl_->worker.wait(); }

}  // namespace qkv
