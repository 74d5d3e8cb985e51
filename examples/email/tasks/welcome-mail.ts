/**
 * Sends a mail by SMTP. A server that is busy is asked again when it may have time, and an address that it refuses is not tried again.
 *
 *     SMTP_URL=smtp://user:password@mail.example:587 npx baton start --tasks examples/email/tasks
 *     npx baton submit welcome-mail '{"to":"ada@example.org","name":"Ada"}' --wait
 */

import { defineTask, PermanentError, RetryAfter } from "batonjs/task";
import { createTransport } from "nodemailer";
import { z } from "zod";

const smtp = createTransport(process.env["SMTP_URL"] ?? "smtp://127.0.0.1:25");

export default defineTask({
  name: "welcome-mail",
  schema: z.object({ to: z.email(), name: z.string().min(1) }),
  timeout: "1m",
  retry: { attempts: 8, delay: "10s", factor: 3, maxDelay: "1h" },
  async run({ to, name }, { job, log }) {
    const mail = {
      from: "shop@example.org",
      to,
      subject: `Welcome, ${name}`,
      text: `Hello ${name}, it is good to have you with us.`,
      // The server may take a mail and the answer be lost. The next run sends the same id, so that the copy is known as one.
      messageId: `<${job.id}@example.org>`,
    };
    try {
      const { response } = await smtp.sendMail(mail);
      log(`the server says: ${response}`);
      return { messageId: mail.messageId };
    } catch (error) {
      throw whatNext(error as Error & { readonly responseCode?: number });
    }
  },
});

/** 5xx: never. 4xx: not now, as in grey listing. No answer at all is for the retry policy above. */
function whatNext(error: Error & { readonly responseCode?: number }): Error {
  const { message, responseCode = 0 } = error;
  if (responseCode >= 500) return new PermanentError(message, { cause: error });
  if (responseCode >= 400) return new RetryAfter("5m", message, { cause: error });
  return error;
}
