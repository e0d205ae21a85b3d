// written by the engine alone: no form offers to change it
frappe.ui.form.on("Job Trouble", { refresh: (frm) => frm.disable_form() });
