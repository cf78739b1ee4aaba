export default [{ files: ["out/**/*.js"], rules: { "no-unused-vars": "error", eqeqeq: "error" } }];
