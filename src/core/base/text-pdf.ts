/** A PDF of plain lines, for recipients that take no other form of text. @see ISO 32000-1 */

const LINES_PER_PAGE = 60
const MAX_LINE = 95

/** Writes lines in a fixed-width type. Characters outside printable ASCII become `?`; long lines are broken. */
export function writeTextPdf(lines: readonly string[]): Uint8Array {
  const broken = lines.flatMap((line) => {
    const text = line.replaceAll(/[^\x20-\x7e]/g, '?')
    return text.match(new RegExp(`.{1,${MAX_LINE}}`, 'g')) ?? ['']
  })
  const pages: string[][] = []
  for (let start = 0; start < broken.length || start === 0; start += LINES_PER_PAGE)
    pages.push(broken.slice(start, start + LINES_PER_PAGE))
  const firstPage = 4
  const kids = pages.map((_, index) => `${firstPage + index * 2} 0 R`).join(' ')
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>',
    ...pages.flatMap((page, index) => {
      const content = `BT /F1 9 Tf 12 TL 40 800 Td\n${page.map((line) => `(${escapeText(line)}) Tj T*`).join('\n')}\nET`
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents ${firstPage + index * 2 + 1} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ]
    }),
  ]
  let text = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const size = objects.length + 1
  return Buffer.from(
    `${text}xref\n0 ${size}\n0000000000 65535 f \n${table}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`,
    'latin1',
  )
}

function escapeText(line: string): string {
  return line.replaceAll(/[\\()]/g, (mark) => `\\${mark}`)
}
