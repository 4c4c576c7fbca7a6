//! The flows that the product must deliver, step by step; `steps.txt` says which test shows which step.
//! The step ids stand in the comments of the tests.

mod local;
