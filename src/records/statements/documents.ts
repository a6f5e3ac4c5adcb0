/** The media types in which a statement is served beside JSON and CSV. Their writers are loaded when they are first needed. */
import { type AccountStatement, statementView } from './read-statement.ts'

type Write = (statement: AccountStatement) => Promise<string | Uint8Array>

const document = (extension: string, write: Write) => ({
  extension,
  write: (answer: unknown) => write(statementView.parse(answer)),
})

export const documents = {
  'application/pdf': document('pdf', async (statement) =>
    (await import('./write-pdf.ts')).writePdf(statement),
  ),
  'application/x-ofx': document('ofx', async (statement) =>
    (await import('./write-ofx.ts')).writeOfx(statement),
  ),
  'application/xml': document('xml', async (statement) =>
    (await import('./write-camt.ts')).writeCamt(statement),
  ),
  'text/x-hledger': document('journal', async (statement) =>
    (await import('./write-hledger.ts')).writeHledger(statement),
  ),
}
