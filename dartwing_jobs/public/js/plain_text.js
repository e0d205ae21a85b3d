// Desk draws several kinds of fields as HTML: JSON and links always, long texts and cells of lists on Frappe v15.
// What stands in our fields was given by people and by programs: here every one of them becomes text.
// Desk runs this each time it loads one of our DocTypes, before it draws anything of it (hook doctype_list_js).
(() => {
	const MODULE = "Dartwing Jobs";
	const STAND_IN = "dartwing_jobs_text";
	const { escape_html } = frappe.utils;
	const FORMATTERS = { Link: as_link, "Dynamic Link": as_link, Select: as_choice, JSON: as_code, Code: as_code };
	const TEXTS = ["Data", "Text", "Small Text", "Long Text", "Text Editor", "Markdown Editor", "HTML Editor"];
	TEXTS.forEach((fieldtype) => (FORMATTERS[fieldtype] = as_text));

	for (const meta of Object.values(locals.DocType)) {
		if (meta.module === MODULE) draw_as_text(meta);
	}
	draw_choices_as_text(frappe.views.ListGroupBy?.prototype);
	draw_labels_as_text(frappe.views.ReportView?.prototype);

	function draw_as_text(meta) {
		// a DocType that was loaded twice has two sets of fields: forms use one, lists and reports the other
		const { docfield_list, docfield_map } = frappe.meta;
		for (const df of [...(docfield_list[meta.name] || []), ...Object.values(docfield_map[meta.name] || {})]) {
			df.formatter = FORMATTERS[df.fieldtype] || df.formatter;
		}
		const settings = (frappe.listview_settings[meta.name] ||= {});
		settings.formatters = { ...cells_of(meta), ...settings.formatters };
	}

	function as_text(value, df, options, doc) {
		return escaped(value, df, doc).replace(/\r?\n/g, "<br>");
	}

	// PostgreSQL hands JSON over as what it stands for
	function as_code(value) {
		const text = value && typeof value === "object" ? JSON.stringify(value) : (value ?? "");
		return text === "" ? "" : `<pre style="white-space: pre-wrap">${escape_html(text)}</pre>`;
	}

	function as_choice(value) {
		return escape_html(__(value ?? ""));
	}

	function as_link(value, df, options, doc) {
		const doctype = df._options || df.options;
		const is_anchor = value && value[0] !== "'" && frappe.model.can_read(doctype);
		if (is_anchor && !options?.only_value && !options?.for_print) {
			return frappe.form.formatters.Link(value, df, options, doc); // builds an element, and sets its text
		}
		return escape_html(frappe.utils.get_link_title(doctype, value) || (value ?? ""));
	}

	// controls of forms escape some kinds of fields before they ask, which kinds depends on Frappe's version
	function escaped(value, df, doc) {
		const text = escape_html(value ?? "");
		return doc && value === escape_html(doc[df.fieldname] ?? "") ? value : text;
	}

	// lists paste the value of a link or of a choice into an attribute; the title is drawn as text by Desk itself
	function cells_of(meta) {
		const fields = (meta.fields || []).filter((df) => df.fieldname !== meta.title_field);
		const cells = fields.filter((df) => ["Link", "Select"].includes(df.fieldtype)).map((df) => [df.fieldname, cell]);
		return Object.fromEntries(cells);
	}

	function cell(value, df, doc) {
		if (!value) return "";
		const title = escape_html(__(doc[`${df.fieldname}_${frappe.get_meta(df.options)?.title_field}`] || value));
		const pill = df.fieldtype === "Select" ? `indicator-pill ${frappe.utils.guess_colour(value)}` : "";
		const filter = escape_html(`${df.fieldname},=,${value}`);
		return `<a class="filterable ellipsis ${pill}" title="${title}" data-filter="${filter}">${title}</a>`;
	}

	// beside a list one can filter by what stands in a field; Desk pastes those values into the page as they are
	function draw_choices_as_text(choices) {
		const draw = choices?.get_dropdown_html;
		if (!draw || draw.draws_texts) return;
		choices.get_dropdown_html = function (choice, ...look) {
			if (!is_ours(this.doctype) || !/[<>&"'`]/.test(choice.name)) return draw.call(this, choice, ...look);
			return with_text(draw.call(this, { ...choice, name: STAND_IN }, ...look), choice.name);
		};
		choices.get_dropdown_html.draws_texts = true;
	}

	// so it does with the labels of a report's chart, and with what that says of the bar below the mouse
	function draw_labels_as_text(reports) {
		const build = reports?.build_chart_args;
		if (!build || build.draws_texts) return;
		reports.build_chart_args = function (...asked) {
			build.apply(this, asked);
			if (is_ours(this.doctype)) this.chart_args.labels = this.chart_args.labels.map(escape_html);
		};
		reports.build_chart_args.draws_texts = true;
	}

	function is_ours(doctype) {
		return frappe.get_meta(doctype)?.module === MODULE;
	}

	// what is drawn is escaped, and what a click filters by is the value itself
	function with_text(drawn, text) {
		const filter = `data-value="${encodeURIComponent(text)}"`;
		return drawn.replaceAll(`data-value="${STAND_IN}"`, () => filter).replaceAll(STAND_IN, () => escape_html(text));
	}
})();
