// The real window under Xvfb, driven as a person drives it.
#include <doctest/doctest.h>

#include "tests/gui/desktop.h"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("the window opens, shows something, and Ctrl+Q ends the program") {
  Desktop desktop;
  if (!desktop.problem().empty()) {
    MESSAGE("skipped: " << desktop.problem());
    return;
  }
  Window window(desktop, {});
  REQUIRE_MESSAGE(window.opened(), window.err());
  CHECK(window.title().find("qkvlab") != std::string::npos);
  CHECK(count_colors(window.settled()) > 100);

  window.key("ctrl+q");
  const Finished finished = window.wait();
  CHECK(finished.exit_code == 0);
  CHECK(finished.err == "");
  CHECK(std::filesystem::exists(desktop.config_folder() + "/qkvlab/preferences.json"));
}
