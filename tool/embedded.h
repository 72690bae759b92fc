// embedded.h - files of this folder that the build puts into the tool.
#ifndef TARN_TOOL_EMBEDDED_H_
#define TARN_TOOL_EMBEDDED_H_

extern const char embedded_page_css[];
extern const char embedded_page_js[];
extern const char embedded_plan_svg_css[];
extern const char embedded_plugin_skeleton_c_in[];
extern const char embedded_view_html[];
extern const char embedded_view_css[];
extern const char embedded_view_model_js[];
extern const char embedded_view_raster_js[];
extern const char embedded_view_draw_js[];
extern const char embedded_view_side_js[];
extern const char embedded_view_act_js[];
extern const char embedded_view_measure_js[];

#endif  // TARN_TOOL_EMBEDDED_H_
