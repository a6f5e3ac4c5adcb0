/** Members of a request that names what is to be bought. */
import { z } from 'zod'

export const requestMembers = {
  url: z.string().min(1).max(2048).describe('URL to buy.'),
  method: z.enum(['GET', 'POST']).optional().describe('HTTP method; `GET` by default.'),
  body: z
    .union([z.string().max(65_536), z.looseObject({})])
    .optional()
    .describe('Body of a POST: text, or an object to send as JSON; at most 64 KiB.'),
}
