// The page that uploads datasets and code, new ones and next versions.
import { UploadPage } from "../upload/page";

const form = document.getElementById("upload");
if (form instanceof HTMLFormElement) new UploadPage(form).start();
