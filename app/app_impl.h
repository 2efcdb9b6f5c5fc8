// The state behind App, shared by the files that implement it. Private to app/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/app.h"
#include "app/assets.h"
#include "app/engine/background.h"
#include "app/engine/engine.h"
#include "app/panels/cell_editor.h"
#include "app/panels/compare_tab.h"
#include "app/panels/export_dialog.h"
#include "app/panels/file_dialog.h"
#include "app/panels/frame_panels.h"
#include "app/panels/heads_tab.h"
#include "app/panels/inspector.h"
#include "app/panels/mapping_dialog.h"
#include "app/panels/message_dialogs.h"
#include "app/panels/opening.h"
#include "app/panels/setup_panel.h"
#include "core/attention/streamed_pass.h"
#include "core/session/history.h"

namespace qkv {

struct Dialogs {
  FileDialogState file;
  MatrixId saving;  // of FilePurpose::kSaveMatrix
  ExportState exporting;
  MappingDialogState mapping;
  QuestionState question;
  InfoState shortcuts, about;
  PaletteState palette;
  std::function<void(Answer)> on_answer;  // of `question`
  bool any_open() const {
    return file.open || exporting.open || mapping.open || question.open || shortcuts.open || about.open || palette.open;
  }
};

struct App::Impl {
  Impl(AppServices given, Preferences remembered)
      : services(std::move(given)),
        preferences(std::move(remembered)),
        labels(*services.images),
        engine(services.wake, services.most_held_bytes),
        lens_engine(services.wake),
        compare_engine(services.wake),
        opening(services.wake),
        history(worked_example()),
        sources(std::make_unique<SourcePictures>(services.wake)) {}

  AppServices services;
  Preferences preferences;
  FontSet fonts;
  LabelCache labels;
  WidgetRegistry widgets;
  Ui ui;
  Engine engine;
  LensEngine lens_engine;
  CompareEngine compare_engine;
  FileOpening opening;
  History history;
  std::filesystem::path path;                // where Save writes
  std::shared_ptr<const Computed> computed;  // never null after open()
  // What the frame that is being rendered points into: its heat maps are read after edits have replaced both.
  std::optional<Error> failure;             // why the newest edit has no result
  std::shared_ptr<const LensResult> lens;   // what the cells show in place of values; null = values
  std::optional<LensRequest> lens_request;  // the newest
  std::shared_ptr<const Computed> drawn;
  std::shared_ptr<const LensResult> drawn_lens;
  std::shared_ptr<const CompareResult> drawn_comparison;
  Problem drawn_problem;
  TokenStyle detected_tokens = TokenStyle::kPlain;  // of the session
  std::uint64_t version = 1;
  ActionQueue queue;
  SetupState setup;
  OptionPictures pictures;
  StageState stage;
  std::unique_ptr<SourcePictures> sources;  // never null
  InspectorState inspector;
  HeadsState heads;
  CompareState compare;
  FillForm fill;
  Dialogs dialogs;
  std::vector<Toast> toasts;
  std::vector<MenuEntry> examples;
  std::optional<ThemeName> styled;  // theme that ImGui's style was set to
  std::filesystem::path screenshot_path;
  int frames_to_screenshot = -1;  // −1: none wanted
  bool quit = false;
  bool redraw = true;

  // app.cpp: one frame
  StageInput input() const {
    const TokenStyle tokens = history.current().view.raw_tokens ? TokenStyle::kStored : detected_tokens;
    return {history.current(), *computed, version, lens.get(), sources.get(), tokens, missing()};
  }
  // The newest edit has no result, and none is on its way.
  bool has_failed() const { return failure && !engine.busy(); }
  // Somebody stopped the pass of what is shown.
  bool is_stopped() const { return is_refining(computed->trace) && engine.is_stopped(); }
  bool can_stop() const { return is_refining(computed->trace) && engine.can_stop(); }
  Missing missing() const {
    return has_failed() ? Missing::kFailed : is_stopped() ? Missing::kStopped : Missing::kComing;
  }
  // What pictures are made of; `in` outlives it.
  PictureSource picture_source(const StageInput& in) const;
  CommandContext context() const;
  bool is_asking() const { return dialogs.any_open() || opening.is_running(); }
  void begin_ui();
  void draw_root();
  void draw_stage(ImVec2 min, ImVec2 max);
  void draw_dialogs();
  void draw_mapping();
  void apply_queue();
  void recompute();  // after the session changed
  void take_results();
  void compare_with(const std::filesystem::path& other);
  void update_comparison();  // asks for the comparison of what is shown now, and takes what is there
  void update_lens();        // asks for what the view wants to see, and takes what is there
  void say(std::string text, double seconds = 5);

  // app_panels.cpp: the stage between its side panels
  void draw_panels(ImVec2 min, ImVec2 max);
  void draw_splitters(ImVec2 min, ImVec2 max, float left, float right);

  // app_commands.cpp: what commands do
  void run(CommandId command);
  void run_view_command(CommandId command);
  void replace_session(Session session, std::filesystem::path from);
  void wait_for_newest();

  // app_files.cpp: files in and out
  void load(const std::filesystem::path& from, bool ask_what_is_what = false);
  void add_to_mapping(const std::filesystem::path& from);
  void open_clipboard();
  void show_if_read();  // what `opening` began, where that takes no time
  void show_opened(FileOpening::Finished file);
  void take_opened(Session session, const std::filesystem::path& from, bool is_session);
  void save_to(const std::filesystem::path& to);
  void with_saved_work(std::function<void()> then);
  void with_overwrite_asked(const std::filesystem::path& to, std::function<void()> then);
  void export_picture(const ExportRequest& request);
  void save_arrays(FilePurpose purpose, const std::filesystem::path& to);
  void file_chosen(FilePurpose purpose, const std::filesystem::path& chosen);
  std::filesystem::path open_folder() const;
  std::filesystem::path source_folder() const;  // of the session, or of the tensors that it is made of; else empty
  std::filesystem::path export_folder() const;
  void remember(const std::filesystem::path& file);
};

}  // namespace qkv
