// Ordinary requests, so many that the seats are taken and a few wait: made by the server, refused while anybody
// else's run.
import {ApiError, post} from '../data/api';

export interface Company {
  prompt?: string;
  n?: number;
  max_tokens?: number;
}
export async function company(body: Company = {}, signal?: AbortSignal): Promise<string[]> {
  try {
    return (await post<{requests: string[]}>('/api/lab/company', body, signal)).requests;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 405)) throw new Error('This server cannot send company: it is older than the page.');
    throw error;
  }
}
