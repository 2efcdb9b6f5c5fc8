// Session files: what is read is written so that it reads back the same, and small ones are computed.
#include <string>

#include "core/session/session_file.h"
#include "tests/fuzz/read_all.h"

namespace {

// Both passes of a session that takes some microseconds, whatever its options and numbers are.
void compute(const qkv::Session& session) {
  const qkv::Result<qkv::Shapes> shapes = qkv::check_session(session);
  qkv::fuzz::require(shapes.ok());
  if (qkv::estimated_flops(shapes.value()) > 1e5) return;
  for (const qkv::Arithmetic arithmetic : {qkv::Arithmetic::kFloat64, qkv::Arithmetic::kFloat32}) {
    const qkv::Result<qkv::Trace> trace = qkv::forward(session.problem, {.arithmetic = arithmetic});
    qkv::fuzz::require(trace.ok() && trace.value().heads.size() == static_cast<std::size_t>(shapes.value().heads));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using qkv::fuzz::require;
  // No file that a session names is found in a folder that is not there.
  const std::filesystem::path folder = "/nonexistent";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const qkv::Result<qkv::Session> session = qkv::parse_session(text, folder);
  if (!session.ok()) {
    require(!session.error().message.empty() && session.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string written = qkv::session_to_json(session.value());
  const qkv::Result<qkv::Session> again = qkv::parse_session(written, folder);
  require(again.ok());
  require(qkv::session_to_json(again.value()) == written);
  compute(again.value());
  return 0;
}
