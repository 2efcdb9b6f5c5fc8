// What is worked out beside a trace off the UI thread: lenses and comparisons.
#pragma once

#include "app/engine/compare.h"
#include "app/engine/lens.h"
#include "app/engine/newest_worker.h"

namespace qkv {

class LensEngine : public NewestWorker<LensRequest, std::shared_ptr<const LensResult>> {
 public:
  explicit LensEngine(std::function<void()> wake);
  void request(const LensRequest& request);  // small ones at once
};

class CompareEngine : public NewestWorker<CompareRequest, std::shared_ptr<const CompareResult>> {
 public:
  explicit CompareEngine(std::function<void()> wake);
  void request(const CompareRequest& request);
};

}  // namespace qkv
